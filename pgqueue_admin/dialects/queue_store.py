"""Protocol of a queue table, the same for every database."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault

LOWEST = -(2**63)  # no seq is below it

QueueRow = tuple[str, bytes, int | None]  # headers, body, ms to expiry by the server's clock, or None


class ReceivedRow(Protocol):
    """A row deleted by a receive. ``expired``: by the server's clock, at the receive."""

    id: str
    seq: int
    expired: bool
    headers: str
    body: bytes | None


class PeekResult(NamedTuple):
    """``pending``: highest minus lowest free seq, plus one. ``head``: the lowest, or LOWEST."""

    pending: int
    head: int


class QueueStore(Protocol):
    """One queue table. Execute a Command in a session of the same dialect, alone or with others in one round trip."""

    address: Address

    def create(self, session: Session) -> None:
        """Create the table if missing; safe for concurrent callers."""

    def add_body_column(self, session: Session) -> None:
        """Add the column that shows bodies to SQL (T6), if missing. Waits for concurrent callers."""

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        """Defects of the table as a queue; reads the catalog. ``readable``: require bodies readable by SQL."""

    def insertions(self, rows: Sequence[QueueRow]) -> list[Command]:
        """Statements that insert them in this order; at least one row."""

    def load(self, session: Session, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """Bulk load rows while they are made; all or nothing.

        ``spans``: the expiry times that occur. False: the table accepts no bulk load, and nothing was written; rows
        already consumed are lost.
        """

    def send_as_it_is(self, session: Session, row_id: str, headers: str, body: bytes) -> None:
        """Insert an unreadable message unchanged, except for an id that the table has already; it never expires."""

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        """The statement that deletes the free rows of the lowest seqs, from ``low`` on; returns ReceivedRows."""

    def is_received(self, session: Session, row: ReceivedRow) -> bool:
        """Whether a batch's transaction, ended by a handler, was committed, so that the row is gone."""

    def peek(self, session: Session) -> PeekResult:
        """Lock-aware: rows in flight are not counted (T10)."""

    def purge(self, session: Session, expired_only: bool = False) -> int:
        """Delete free rows, in chunks with a commit each; return how many."""
