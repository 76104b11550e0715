"""An endpoint's delayed table: sends with a delay write to it; due messages move to the endpoint's own queue."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.dialects.connection import Command, Session
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import DELAYED_SUFFIX, table_name
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.message import OutgoingMessage

BATCH = 100  # wire sheet 3
_MILLISECOND = timedelta(milliseconds=1)


class DelayedTable:
    """``Sales.Delayed`` of ``Sales``; all instances of the endpoint share it.

    It is in the queue's schema, unless ``address`` is given: its schema is looked up by its own name (wire sheet 1.4).
    """

    def __init__(self, dialect: Dialect, queue: Address, address: Address | None = None):
        self.address = address or queue._replace(table=table_name(queue.table, DELAYED_SUFFIX))
        self._dialect = dialect
        self._store = dialect.delayed_store(self.address, queue)

    def __str__(self) -> str:
        return self._dialect.canonical(self.address)

    def create(self, session: Session) -> None:
        """Create the table if missing; safe for concurrent callers."""
        self._store.create(session)

    def add_body_column(self, session: Session) -> None:
        self._store.add_body_column(session)

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        return self._store.faults(session, readable)

    def store(self, session: Session, messages: Sequence[OutgoingMessage]) -> None:
        """Store messages until due, in the caller's transaction and in one round trip."""
        session.run_all(self.insertions(messages))

    def insertions(self, messages: Sequence[OutgoingMessage]) -> list[Command]:
        """Statements that store them; at least one message."""
        return self._store.insertions([_row(each) for each in messages])

    def move_due(self, session: Session) -> int:
        """Move due messages to the endpoint's own queue, at most a batch; return how many.

        Raises RowsDropped if the queue drops some: the caller's rollback restores them.
        """
        return self._store.move_due(session, BATCH)

    def next_due(self, session: Session) -> float | None:
        """Seconds until the next message is due, ignoring overdue ones."""
        return self._store.next_due(session)


def _row(message: OutgoingMessage) -> DelayedRow:
    at = message.delay if isinstance(message.delay, datetime) else None
    return DelayedRow(h.dump(message.headers), message.body, at, _milliseconds(message.delay))


def _milliseconds(delay: Delay | None) -> int | None:
    return round(delay / _MILLISECOND) if isinstance(delay, timedelta) else None
