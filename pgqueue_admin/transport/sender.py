"""Writes outgoing messages: each once, in order, a statement per queue; delayed ones wait in the endpoint's table."""

from collections.abc import Callable, Iterable, Sequence

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.transport import delays
from pgqueue_admin.transport.delayed_table import DelayedTable
from pgqueue_admin.transport.message import OutgoingMessage
from pgqueue_admin.transport.table_queue import TableQueue


class Sender:
    """After the commit ``tell`` is told which queues got something, and ``due_in`` in how many seconds what was stored
    comes due.
    """

    def __init__(
        self,
        dialect: Dialect,
        delayed: DelayedTable,
        due_in: Callable[[float], None],
        tell: Callable[[set[Address]], None],
    ):
        self._dialect = dialect
        self._delayed = delayed
        self._due_in = due_in
        self._tell = tell

    def dispatch(self, connection: Connection, outgoing: Iterable[OutgoingMessage]) -> None:
        """Write all, in the caller's transaction. Raises TableMissing where a queue does not exist."""
        messages = distinct(outgoing)
        for address, group in by_destination(each for each in messages if each.delay is None).items():
            TableQueue(self._dialect, address).send(connection, group)
        if later := [each for each in messages if each.delay is not None]:
            self._delayed.store(connection, later)

    def committed(self, outgoing: Sequence[OutgoingMessage]) -> None:
        """Before the commit whoever looks would not see them, and look again much later."""
        self._tell({each.destination for each in outgoing if each.delay is None})
        for delay in [each.delay for each in outgoing if each.delay is not None]:
            self._due_in(delays.seconds(delay))


def distinct(outgoing: Iterable[OutgoingMessage]) -> list[OutgoingMessage]:
    """Of several with one message id and destination the last is sent (wire sheet 5)."""
    last: dict[tuple[str | None, Address], OutgoingMessage] = {}
    for message in outgoing:
        last.pop(message.key, None)
        last[message.key] = message
    return list(last.values())


def by_destination(messages: Iterable[OutgoingMessage]) -> dict[Address, list[OutgoingMessage]]:
    found: dict[Address, list[OutgoingMessage]] = {}
    for message in messages:
        found.setdefault(message.destination, []).append(message)
    return found
