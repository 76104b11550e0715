"""A queue that is a table: messages in, messages out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from operator import attrgetter

from pgqueue_admin.dialects import Address, Dialect
from pgqueue_admin.dialects.connection import Command, Row, Session
from pgqueue_admin.dialects.queue_store import LOWEST, PeekResult, QueueRow
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.transport.wire.headers import dump
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

_MILLISECOND = timedelta(milliseconds=1)
_seq = attrgetter("seq")


class TableQueue:
    """One queue table, in terms of messages. Every method but purge works in the caller's transaction."""

    def __init__(self, dialect: Dialect, address: Address):
        self.address = address
        self._dialect = dialect
        self._store = dialect.queue_store(address)
        self.supports_batches = dialect.supports_batches

    def __str__(self) -> str:
        return self._dialect.canonical(self.address)

    def create(self, session: Session) -> None:
        self._store.create(session)

    def add_body_column(self, session: Session) -> None:
        self._store.add_body_column(session)

    def faults(self, session: Session, readable: bool = False) -> Iterator[TableFault]:
        """What keeps it from being a queue. ``readable``: its bodies are to be, by SQL (a column bodystring)."""
        return self._store.faults(session, readable)

    def send(self, session: Session, messages: Sequence[OutgoingMessage]) -> None:
        """Insert in the order given, in one round trip (T8)."""
        if messages:
            session.run_all(self.insertions(messages))

    def insertions(self, messages: Sequence[OutgoingMessage]) -> list[Command]:
        """What inserts them; at least one message."""
        return self._store.insertions(list(map(_row, messages)))

    def load(self, session: Session, messages: Sequence[OutgoingMessage]) -> bool:
        """As ``send``, as fast as the database can. False: the table takes no bulk load, and nothing was written."""
        spans = {span for each in messages if (span := milliseconds(each.ttbr)) is not None}
        return self.load_rows(session, map(_row, messages), spans)

    def load_rows(self, session: Session, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """As ``load``, of rows that are made meanwhile. ``spans``: the times to expire that occur."""
        return self._store.load(session, rows, spans)

    def send_as_it_is(self, session: Session, row_id: str, headers_text: str, body: bytes) -> None:
        """Insert what cannot be read, unchanged but for an id that is there already; it no longer expires."""
        self._store.send_as_it_is(session, row_id, headers_text, body)

    def receive(self, session: Session, low: int = LOWEST) -> IncomingMessage | None:
        """Take the message of the lowest seq that nobody has (T7, T9). It is gone when the transaction commits.

        ``low``: nothing below it is looked for.
        """
        row = session.one(*self.receiving(low))
        return IncomingMessage.of_row(self.address, row) if row else None

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        """What takes up to ``most`` of them; its rows are for ``read``."""
        return self._store.receiving(low, most)

    def read(self, rows: list[Row]) -> list[IncomingMessage]:
        """The lowest seq first. It takes the rows: what a batch keeps, the garbage collector walks again and again."""
        rows.sort(key=_seq)
        messages = [IncomingMessage.of_row(self.address, row) for row in rows]
        rows.clear()
        return messages

    def is_received(self, session: Session, row: Row) -> bool:
        """Of a batch whose transaction is over: it was committed, and the row is gone."""
        return self._store.is_received(session, row)

    def peek(self, session: Session) -> int:
        """Highest minus lowest seq that nobody has, plus one; 0 when there is none (T10)."""
        return self.look(session).pending

    def look(self, session: Session) -> PeekResult:
        """As ``peek``, and which seq is the lowest."""
        return self._store.peek(session)

    def purge(self, session: Session, expired_only: bool = False) -> int:
        """Delete what nobody has in hand, a chunk at a time, each a commit of its own; return how many."""
        return self._store.purge(session, expired_only)


def _row(message: OutgoingMessage) -> QueueRow:
    return dump(message.headers), message.body, milliseconds(message.ttbr)


def milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else round(span / _MILLISECOND)
