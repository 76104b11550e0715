"""What the engine asks of a queue table, whatever the database."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault

LOWEST = -(2**63)  # no seq is below it

QueueRow = tuple[str, bytes, int | None]  # headers, body, and in how many ms it expires by the server's clock, or never


class ReceivedRow(Protocol):
    """A row that a receive deleted. ``expired``: by the server's clock, at the receive."""

    id: str
    seq: int
    expired: bool
    headers: str
    body: bytes | None


class PeekResult(NamedTuple):
    """``pending``: highest minus lowest seq that nobody has, plus one. ``head``: the lowest, or LOWEST."""

    pending: int
    head: int


class QueueStore(Protocol):
    """One queue table. A Command is asked in a session of the same dialect, alone or with others in one round trip."""

    address: Address

    def create(self, session: Session) -> None:
        """Where it is missing; safe beside others who create it at the same moment."""

    def add_body_column(self, session: Session) -> None:
        """A column that shows bodies to SQL (T6), where it is missing. Others who add it are waited for."""

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        """What keeps it from being a queue; reads the catalog. ``readable``: its bodies are to be, by SQL."""

    def insertions(self, rows: Sequence[QueueRow]) -> list[Command]:
        """What inserts them in this order; at least one row."""

    def load(self, session: Session, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """Insert many while they are made, as fast as the database can; all or nothing.

        ``spans``: the times to expire that occur. False: the table takes no bulk load, and nothing was written; what
        was taken of ``rows`` is gone.
        """

    def send_as_it_is(self, session: Session, row_id: str, headers: str, body: bytes) -> None:
        """Insert what cannot be read, unchanged but for an id that the table would not take twice; it never expires."""

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        """What deletes the rows of the lowest seqs that nobody has, from ``low`` on; answers with ReceivedRows."""

    def is_received(self, session: Session, row: ReceivedRow) -> bool:
        """Of a batch whose transaction somebody ended: that was a commit, and the row is gone."""

    def peek(self, session: Session) -> PeekResult:
        """Lock-aware: rows in somebody's hands are not counted (T10)."""

    def purge(self, session: Session, expired_only: bool = False) -> int:
        """Delete what nobody has in hand, a chunk at a time, each a commit of its own; how many."""
