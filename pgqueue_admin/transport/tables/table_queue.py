"""A queue table in terms of messages."""

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
    """One queue table. Every method but purge works in the caller's transaction."""

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
        """Defects of the table as a queue. ``readable``: require bodies readable by SQL (a column bodystring)."""
        return self._store.faults(session, readable)

    def send(self, session: Session, messages: Sequence[OutgoingMessage]) -> None:
        """Insert in the order given, in one round trip (T8)."""
        if messages:
            session.run_all(self.insertions(messages))

    def insertions(self, messages: Sequence[OutgoingMessage]) -> list[Command]:
        """Statements that insert them; at least one message."""
        return self._store.insertions(list(map(_row, messages)))

    def load(self, session: Session, messages: Sequence[OutgoingMessage]) -> bool:
        """As ``send``, by bulk load. False: the table accepts none, and nothing was written."""
        spans = {span for each in messages if (span := milliseconds(each.ttbr)) is not None}
        return self.load_rows(session, map(_row, messages), spans)

    def load_rows(self, session: Session, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        """As ``load``, of rows made lazily. ``spans``: the expiry times that occur."""
        return self._store.load(session, rows, spans)

    def send_as_it_is(self, session: Session, row_id: str, headers_text: str, body: bytes) -> None:
        """Insert an unreadable message unchanged, except for an id that the table has already; it never expires."""
        self._store.send_as_it_is(session, row_id, headers_text, body)

    def receive(self, session: Session, low: int = LOWEST) -> IncomingMessage | None:
        """Delete the free message of the lowest seq (T7, T9). It is gone when the transaction commits.

        ``low``: the lowest seq to receive.
        """
        row = session.one(*self.receiving(low))
        return IncomingMessage.of_row(self.address, row) if row else None

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        """The statement that receives up to ``most``; pass its rows to ``read``."""
        return self._store.receiving(low, most)

    def read(self, rows: list[Row]) -> list[IncomingMessage]:
        """Messages of the rows, lowest seq first. Clears ``rows``: the garbage collector would scan them repeatedly."""
        rows.sort(key=_seq)
        messages = [IncomingMessage.of_row(self.address, row) for row in rows]
        rows.clear()
        return messages

    def is_received(self, session: Session, row: Row) -> bool:
        """Whether a batch's ended transaction was committed, so that the row is gone."""
        return self._store.is_received(session, row)

    def peek(self, session: Session) -> int:
        """Highest minus lowest free seq, plus one; 0 without free rows (T10)."""
        return self.look(session).pending

    def look(self, session: Session) -> PeekResult:
        """As ``peek``, with the lowest seq."""
        return self._store.peek(session)

    def purge(self, session: Session, expired_only: bool = False) -> int:
        """Delete free rows, in chunks with a commit each; return how many."""
        return self._store.purge(session, expired_only)


def _row(message: OutgoingMessage) -> QueueRow:
    return dump(message.headers), message.body, milliseconds(message.ttbr)


def milliseconds(span: timedelta | None) -> int | None:
    return None if span is None else round(span / _MILLISECOND)
