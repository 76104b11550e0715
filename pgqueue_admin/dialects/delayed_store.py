"""Protocol of a delayed table, the same for every database."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault


class DelayedRow(NamedTuple):
    """Due either at ``at``, or ``delay_ms`` from now by the server's clock."""

    headers: str
    body: bytes
    at: datetime | None
    delay_ms: int | None


class DelayedStore(Protocol):
    """One delayed table, and the queue that its due messages move to."""

    address: Address

    def create(self, session: Session) -> None:
        """Create the table if missing; safe for concurrent callers."""

    def add_body_column(self, session: Session) -> None:
        """As of a queue."""

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        """As of a queue."""

    def insertions(self, rows: Sequence[DelayedRow]) -> list[Command]:
        """Statements that store them; at least one row."""

    def move_due(self, session: Session, most: int) -> int:
        """Move due messages to the queue, soonest first; return how many. Raises RowsDropped if it drops some."""

    def next_due(self, session: Session) -> float | None:
        """Seconds until the next message is due, ignoring overdue ones; None without one."""
