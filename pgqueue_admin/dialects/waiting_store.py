"""What a database beside the first is asked where something is done to messages that wait in its queues."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Session
from pgqueue_admin.dialects.crossing_store import TakenRow


class TableIdentity(NamedTuple):
    """By which a table is known that was made anew, emptied or numbered anew. ``last``: the last number that it gave;
    None where that is not told.
    """

    oid: int
    storage: str
    last: int | None


class WaitingCount(NamedTuple):
    """What a look saw, and between which numbers."""

    number: int
    lowest: int
    up_to: int


class MovingStore(Protocol):
    """Of rows of one table. ``has_own`` and ``move`` are asked inside the transaction that holds the row."""

    def runs(self, session: Session, queue: Address) -> Sequence[str]:
        """What of others runs as ours where a row is held or deleted."""

    def has_own(self, session: Session, queue: Address, row: TakenRow) -> bool:
        """Whether one that is held has a value in a column of its own."""

    def move(self, session: Session, queue: Address, row: TakenRow, target: Address) -> int:
        """Put a held one into a queue there; how many rows that has taken. One without a body is none."""


class DelayedActStore(MovingStore, Protocol):
    """Of a table of delayed messages. What is held is taken out by ``CrossingStore.remove``."""

    def hold(self, session: Session, table: Address, row_id: UUID, due: str) -> TakenRow | None:
        """Exactly this one, as a page has shown it; None where somebody has it, or it has left, or is due at another
        time. Its ``id`` is the one that it has wherever it goes, if no other has it there. Inside a transaction.
        """


class WaitingStore(MovingStore, Protocol):
    """``take``, ``hold`` and ``hold_each`` are asked inside a transaction of the session. What is held is taken out by
    ``CrossingStore.remove``; ``move`` keeps its id and when it expires.
    """

    def identity(self, session: Session, queue: Address) -> TableIdentity | None:
        """None where there is no such table."""

    def count(self, session: Session, queue: Address) -> WaitingCount:
        """Locks nothing. Where locked rows are not seen (``sees_locked_rows``), they are in no count."""

    def left(self, session: Session, queue: Address, lowest: int, up_to: int) -> int:
        """How many are there between these numbers."""

    def own_columns(self, session: Session, queue: Address) -> Sequence[str]:
        """Columns that are none of the transport's, and computed from none."""

    def take(
        self, session: Session, queue: Address, limit: int, most: int, lowest: int, up_to: int
    ) -> Sequence[TakenRow]:
        """Hold rows between these numbers that nobody has, and that have no value in a column of their own; the lowest
        first: of so many bytes, and one in any case.
        """

    def hold(self, session: Session, queue: Address, row_id: UUID, seq: int) -> TakenRow | None:
        """Exactly this one; None where somebody has it, or it has left."""

    def hold_each(self, session: Session, queue: Address, row_ids: Sequence[UUID]) -> Sequence[TakenRow]:
        """Those of these that nobody has, in no order. Where no index has the ids, all of the table is read."""
