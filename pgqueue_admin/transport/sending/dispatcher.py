"""Writes outgoing messages in order, one statement per queue; delayed ones go into the endpoint's delayed table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain

from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.dialects.connection import Command, ReceiveSession
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.sending import bulk
from pgqueue_admin.transport.sending.message_factory import Sheet
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import delivery_delay
from pgqueue_admin.transport.wire.message import OutgoingMessage


class Dispatcher:
    """After the commit, ``tell`` gets the queues and the number of messages, ``due_in`` the seconds until the first
    delayed one is due.
    """

    def __init__(
        self,
        dialect: Dialect,
        delayed: DelayedTable,
        due_in: Callable[[float], None],
        tell: Callable[[set[Address], int], None],
    ):
        self._queue = lru_cache(maxsize=4096)(partial(TableQueue, dialect))
        self._delayed = delayed
        self._due_in = due_in
        self._tell = tell

    def dispatch(
        self,
        connection: ReceiveSession,
        outgoing: Sequence[OutgoingMessage],
        last: bool = False,
        before: Sequence[Command] = (),
    ) -> None:
        """Write all in the caller's transaction, or atomically without one. One round trip, unless in bulk.

        ``last``: nothing follows in the transaction, which may be committed in the same round trip. ``before``:
        statements to execute first. Raises TableMissing if a queue does not exist.
        """
        if len(outgoing) == 1 and outgoing[0].delay is None and not before:
            queue = self._queue(outgoing[0].destination)
            return connection.run_last(queue.insertions(outgoing)) if last else queue.send(connection, outgoing)
        write = connection.run_last if last else connection.run_all
        messages = distinct(outgoing)
        if not bulk.is_large(messages):
            return write(chain(before, self._insertions(messages)))
        connection.run_all(before)
        with connection.transaction():
            self._load(connection, messages)

    def stream(self, connection: ReceiveSession, destination: Address, sheets: Iterator[Sheet]) -> list[str]:
        """Write distinct messages while they are made; all or nothing, and committed. Return their ids; none if the
        queue accepts no bulk load and nothing was written.
        """
        ids: list[str] = []
        if not self._queue(destination).load_rows(connection, bulk.rows_of(sheets, ids)):
            return []
        self._tell({destination}, len(ids))
        return ids

    def committed(self, outgoing: Sequence[OutgoingMessage]) -> None:
        """Call after the commit: a receiver woken before would not see the messages, and peek again much later."""
        self._tell(destinations(outgoing), len(outgoing))
        self.stored(outgoing)

    def stored(self, outgoing: Sequence[OutgoingMessage]) -> None:
        """Report the first due time of delayed messages; the caller ensures that they are committed by then."""
        if waits := [delivery_delay.seconds(each.delay) for each in outgoing if each.delay is not None]:
            self._due_in(min(waits))

    def _insertions(self, messages: list[OutgoingMessage]) -> Iterator[Command]:
        """One statement per queue."""
        now = [each for each in messages if each.delay is None]
        for address, group in by_destination(now).items():
            yield from self._queue(address).insertions(group)
        later = [each for each in messages if each.delay is not None] if len(now) < len(messages) else []
        for start in range(0, len(later), bulk.MANY):
            yield from self._delayed.insertions(later[start : start + bulk.MANY])

    def _load(self, connection: ReceiveSession, messages: list[OutgoingMessage]) -> None:
        groups = by_destination(each for each in messages if each.delay is None)
        large = {address: group for address, group in groups.items() if bulk.is_large(group)}
        for address, group in large.items():
            self._load_one(connection, address, group)
        rest = [each for each in messages if each.delay is not None or each.destination not in large]
        connection.run_all(self._insertions(rest))

    def _load_one(self, connection: ReceiveSession, address: Address, group: list[OutgoingMessage]) -> None:
        queue = self._queue(address)
        if not queue.load(connection, group):
            for part in bulk.slices(group):
                queue.send(connection, part)


def destinations(outgoing: Iterable[OutgoingMessage]) -> set[Address]:
    """Queues that get messages now, without delay."""
    return {each.destination for each in outgoing if each.delay is None}


def distinct(outgoing: Sequence[OutgoingMessage]) -> list[OutgoingMessage]:
    """Keep only the last of messages with the same id and destination (wire sheet 5)."""
    if len({message.key for message in outgoing}) == len(outgoing):
        return list(outgoing)
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
