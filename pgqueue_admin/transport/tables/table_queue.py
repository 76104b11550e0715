"""A queue that is a table: create, send, receive, peek and purge."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Address, Connection, Dialect
from pgqueue_admin.dialects.connection import Row
from pgqueue_admin.dialects.errors import AlreadyExists
from pgqueue_admin.transport.tables import table_exists
from pgqueue_admin.transport.wire.headers import dump
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

_MILLISECOND = timedelta(milliseconds=1)
LOWEST = -(2**63)
PURGE_CHUNK = 10_000
_seq = attrgetter("seq")


class PeekResult(NamedTuple):
    pending: int
    head: int


class TableQueue:
    """One queue table. Every method but purge is one statement in the caller's transaction."""

    def __init__(self, dialect: Dialect, address: Address):
        self.address = address
        self._dialect = dialect
        self._sql = dialect.queue
        self._receives = {1: self._sql.receive(table=address)}
        self._peek = self._sql.peek(table=address)
        self._send = self._sql.send(table=address)

    def __str__(self) -> str:
        return self._dialect.canonical(self.address)

    def create(self, connection: Connection) -> None:
        table_exists.create(connection, self._dialect, self.address, self._sql.create(table=self.address))

    def send(self, connection: Connection, messages: Sequence[OutgoingMessage]) -> None:
        """Insert in the order given, in one round trip (T8)."""
        if messages:
            connection.run(*self.insertion(messages))

    def insertion(self, messages: Sequence[OutgoingMessage]) -> tuple[Any, dict[str, object]]:
        """The statement that inserts them, and its parameters; at least one message."""
        if len(messages) == 1:
            return self._send, _row(messages[0])
        return self._sql.send_many(table=self.address), _columns(messages)

    def send_as_it_is(self, connection: Connection, row_id: str, headers_text: str, body: bytes) -> None:
        """Insert what cannot be read, unchanged but for an id that is there already; it no longer expires.

        Whoever copies a row of an error queue back gives its id to two. It is tried and not looked up: who may only
        send cannot look.
        """
        row = {"id": row_id, "ttbr_ms": None, "headers": headers_text, "body": body}
        try:
            with connection.transaction():
                connection.run(self._send, row)
        except AlreadyExists:
            connection.run(self._send, row | {"id": None})

    def receive(self, connection: Connection, low: int = LOWEST) -> IncomingMessage | None:
        """Take the message of the lowest seq that nobody has (T7, T9). It is gone when the transaction commits.

        ``low``: nothing below it is looked for.
        """
        row = connection.one(self._receives[1], {"low": low})
        return IncomingMessage.of_row(self.address, row) if row else None

    def receiving(self, connection: Connection, low: int, most: int = 1) -> AbstractContextManager[list[Row]]:
        """As ``receive``, in a transaction that ends with the block; begin and receive are one round trip.

        Gives up to ``most`` rows for ``read``.
        """
        return connection.transaction_with(self._receiving(most), {"low": low})

    def receiving_next(
        self, connection: Connection, low: int, most: int = 1
    ) -> AbstractContextManager[list[Row]] | None:
        """As ``receiving``, in one round trip with the commit of the one under way; None where that cannot be."""
        return connection.transaction_behind(self._receiving(most), {"low": low})

    def _receiving(self, most: int) -> Any:
        found = self._receives.get(most)
        if found is None:
            found = self._receives[most] = self._sql.receive_many(table=self.address, most=most)
        return found

    def read(self, rows: list[Row]) -> list[IncomingMessage]:
        """The lowest seq first. It takes the rows: what a batch keeps, the garbage collector walks again and again."""
        rows.sort(key=_seq)
        messages = [IncomingMessage.of_row(self.address, row) for row in rows]
        rows.clear()
        return messages

    def is_received(self, connection: Connection, xact: str) -> bool:
        """What ``receiving`` gave is gone: its transaction, which is over, was committed. ``xact``: as its rows say."""
        return bool(connection.value(self._sql.is_committed(), {"xact": xact}))

    def peek(self, connection: Connection) -> int:
        """Highest minus lowest seq that nobody has, plus one; 0 when there is none (T10). Locks both for a moment."""
        return self.look(connection).pending

    def look(self, connection: Connection) -> "PeekResult":
        """As ``peek``, and which seq is the lowest."""
        row = connection.one(self._peek)
        if not row:
            return PeekResult(0, LOWEST)
        return PeekResult(row.pending, LOWEST if row.head is None else row.head)

    def purge(self, connection: Connection, expired_only: bool = False) -> int:
        """Delete what nobody has in hand, a chunk at a time, each a commit of its own; return how many."""
        statement = self._sql.purge_expired if expired_only else self._sql.purge
        query, purged, after = statement(table=self.address, most=PURGE_CHUNK), 0, LOWEST
        while chunk := connection.one(query, {"after": after}):
            purged, after = purged + chunk.rows, chunk.last
            if chunk.rows < PURGE_CHUNK:
                break
        return purged


def _row(message: OutgoingMessage) -> dict[str, object]:
    return {
        "id": None,
        "ttbr_ms": milliseconds(message.ttbr),
        "headers": dump(message.headers),
        "body": message.body,
    }


def _columns(messages: Sequence[OutgoingMessage]) -> dict[str, object]:
    spans = [message.ttbr for message in messages]
    never = spans.count(None) == len(spans)  # said by leaving them out: the statement takes what is missing for null
    return {
        "ttbrs_ms": [] if never else [milliseconds(span) for span in spans],
        "headers": [dump(message.headers) for message in messages],
        "bodies": [message.body for message in messages],
    }


def milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else round(span / _MILLISECOND)
