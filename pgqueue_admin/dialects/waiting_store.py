"""Store of a database beside the first, for acts on messages that wait in its queues."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow


class TableIdentity(NamedTuple):
    """Identity that changes if a table is recreated, truncated or renumbered. ``last``: the last seq it assigned; None
    if unknown.
    """

    oid: int
    storage: str
    last: int | None


class WaitingCount(NamedTuple):
    """Number of messages counted, and the range of their seqs."""

    number: int
    lowest: int
    up_to: int


class MovingStore(Protocol):
    """Moves rows of one table. Call ``has_own`` and ``move`` inside the transaction that locked the row."""

    def runs(self, session: Session, queue: Address) -> Sequence[str]:
        """Foreign code, e.g. triggers, that runs with our rights if a row is locked or deleted."""

    def has_own(self, session: Session, queue: Address, row: TakenRow) -> bool:
        """Whether a locked row has a value in a column that is not the transport's."""

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        """Insert a locked row into a queue there; return the number of rows accepted, 0 for one without a body."""


class DelayedActStore(MovingStore, Protocol):
    """Acts on a delayed table. ``CrossingStore.remove`` deletes locked rows."""

    def hold(self, session: Session, table: Address, row_id: UUID, due: str) -> TakenRow | None:
        """Lock this row as a page showed it; None if it is in flight, gone, or due at another time.

        It keeps ``id`` wherever it goes, if that is free there. Call it inside a transaction.
        """


class WaitingStore(MovingStore, Protocol):
    """Call ``take``, ``hold`` and ``hold_each`` inside a transaction. ``CrossingStore.remove`` deletes locked rows;
    ``move`` keeps id and expiry.
    """

    def identity(self, session: Session, queue: Address) -> TableIdentity | None:
        """The table's identity; None if it does not exist."""

    def count(self, session: Session, queue: Address) -> WaitingCount:
        """Count without locks. A dialect that does not see locked rows (``sees_locked_rows``) does not count them."""

    def left(self, session: Session, queue: Address, lowest: int, up_to: int) -> int:
        """Number of rows in this range of seqs."""

    def own_columns(self, session: Session, queue: Address) -> Sequence[str]:
        """Columns that are not the transport's, and not computed."""

    def take(
        self, session: Session, queue: Address, limit: int, most: int, lowest: int, up_to: int
    ) -> Sequence[TakenRow]:
        """Lock free rows in this range of seqs that have no value in foreign columns, lowest first: at most ``most``
        bytes in all, but at least one row.
        """

    def hold(self, session: Session, queue: Address, row_id: UUID, seq: int) -> TakenRow | None:
        """Lock this row; None if it is in flight or gone."""

    def hold_each(self, session: Session, queue: Address, row_ids: Sequence[UUID]) -> Sequence[TakenRow]:
        """Lock the free ones of these rows, in any order. Without an index on ids, this scans the table."""
