"""An endpoint's delayed table: what it sends later waits here, and comes to its own queue when it is due."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.errors import AlreadyExists, RowsDropped
from pgqueue_admin.transport.tables.table_exists import is_there
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.addresses import DELAYED_SUFFIX, table_name
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.message import OutgoingMessage

BATCH = 100  # wire sheet 3
_INDEX_SUFFIX = "_Due"
_MILLISECOND = timedelta(milliseconds=1)


class DelayedTable:
    """``Sales.Delayed`` of ``Sales``; all instances of the endpoint share it.

    It lies in the same schema, unless ``address`` says where: its schema is looked up by its own name (wire sheet 1.4).
    """

    def __init__(self, dialect: Dialect, queue: Address, address: Address | None = None):
        self.address = address or Address(queue.schema, table_name(queue.table, DELAYED_SUFFIX))
        self._dialect = dialect
        self._queue = dialect.canonical(queue)
        self._sql = dialect.delayed
        self._move_due = self._sql.move_due(table=self.address, queue=queue, batch=BATCH)
        self._next_due = self._sql.next_due(table=self.address)

    def __str__(self) -> str:
        return self._dialect.canonical(self.address)

    def create(self, connection: Connection) -> None:
        """Safe beside others who create it at the same moment."""
        names = {"schema": self.address.schema, "name": self.address.table}
        index = self.address.table + _INDEX_SUFFIX
        with suppress(AlreadyExists), connection.transaction():
            if not is_there(connection, self._dialect, self.address):
                connection.run(self._sql.create(table=self.address))
            if not connection.value(self._sql.indexes(), names):
                connection.run(self._sql.create_index(table=self.address, index=index))

    def store(self, connection: Connection, messages: Sequence[OutgoingMessage]) -> None:
        """Keep them until they are due, in the caller's transaction and in one round trip."""
        connection.run(*self.insertion(messages))

    def insertion(self, messages: Sequence[OutgoingMessage]) -> tuple[Any, dict[str, object]]:
        """The statement that stores them, and its parameters."""
        columns: dict[str, object] = {
            "headers": [h.dump(message.headers) for message in messages],
            "bodies": [message.body for message in messages],
            "ats": [message.delay if isinstance(message.delay, datetime) else None for message in messages],
            "delays_ms": [_milliseconds(message.delay) for message in messages],
        }
        return self._sql.store(table=self.address), columns

    def move_due(self, connection: Connection) -> int:
        """Move what is due to the endpoint's own queue, at most a batch; return how many.

        Where the queue leaves some out it raises RowsLeftOut: the caller's transaction gives them back.
        """
        taken, due = connection.one(self._move_due) or (0, 0)
        if taken < due:
            raise RowsDropped(f"{self._queue} took {taken} of {due} that are due, and that was undone.")
        return int(taken)

    def next_due(self, connection: Connection) -> float | None:
        """In how many seconds the next comes due, whatever is overdue already."""
        seconds = connection.value(self._next_due)
        return None if seconds is None else float(seconds)


def _milliseconds(delay: Delay | None) -> int | None:
    return round(delay / _MILLISECOND) if isinstance(delay, timedelta) else None
