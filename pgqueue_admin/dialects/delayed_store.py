"""What the engine asks of a delayed table, whatever the database."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.table_fault import TableFault


class DelayedRow(NamedTuple):
    """Due at ``at``, or ``delay_ms`` after now by the server's clock; one of the two."""

    headers: str
    body: bytes
    at: datetime | None
    delay_ms: int | None


class DelayedStore(Protocol):
    """One delayed table, and the queue that what is due goes to."""

    address: Address

    def create(self, session: Session) -> None:
        """Where it is missing; safe beside others who create it at the same moment."""

    def add_body_column(self, session: Session) -> None:
        """As of a queue."""

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        """As of a queue."""

    def insertions(self, rows: Sequence[DelayedRow]) -> list[Command]:
        """What stores them; at least one row."""

    def move_due(self, session: Session, most: int) -> int:
        """Move what is due to the queue, soonest first; how many. Raises RowsDropped where the queue left some out."""

    def next_due(self, session: Session) -> float | None:
        """In how many seconds the next comes due, whatever is overdue already; None: none does."""
