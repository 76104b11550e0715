"""A second dialect: PostgreSQL without COPY, NOTIFY, prepared statements, arrays, savepoints and pipelines.

It is written like another database's dialect, with its own statements, and shares no code with PostgreSQL's stores.
"""

import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Command, Params, Row
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.errors import (
    DatabaseDown,
    DatabaseError,
    RowsDropped,
    SessionClosedByHandler,
    TransactionEndedByHandler,
)
from pgqueue_admin.dialects.postgresql import addressing
from pgqueue_admin.dialects.postgresql.session import translate
from pgqueue_admin.dialects.queue_store import LOWEST, PeekResult, QueueRow, ReceivedRow
from pgqueue_admin.dialects.table_fault import TableFault

SCHEME = "plain"


class PlainSession:
    """Implements ReceiveSession (dialects.connection)."""

    def __init__(self, raw: psycopg.Connection[Any]):
        self.raw = raw

    def all(self, query: Any, params: Params = None) -> list[Row]:
        return self._ask(query, params).fetchall()

    def one(self, query: Any, params: Params = None) -> Row | None:
        return self._ask(query, params).fetchone()

    def value(self, query: Any, params: Params = None) -> Any:
        row = self.one(query, params)
        return row[0] if row else None

    def run(self, query: Any, params: Params = None) -> int:
        return self._ask(query, params).rowcount

    def run_all(self, asked: Iterable[Command]) -> None:
        with self.transaction():
            for query, params in asked:
                self._ask(query, params)

    def run_last(self, asked: Iterable[Command]) -> None:
        self.run_all(asked)

    def _ask(self, query: Any, params: Params) -> psycopg.Cursor[Any]:
        try:
            return self.raw.execute(query, params, prepare=False)
        except psycopg.Error as error:
            raise translate(error) from error

    def transaction(self) -> AbstractContextManager[Any]:
        return self._inner() if self.in_transaction else self._outer()

    @contextmanager
    def _inner(self) -> Iterator[None]:
        """No savepoint: an error here dooms the whole transaction."""
        try:
            yield
        except BaseException:
            if self.in_transaction and not self.has_failed:
                self._fail()
            raise

    def _fail(self) -> None:
        """Doom the transaction, as a database without savepoints does: no more writes."""
        try:
            self.raw.execute("select 1/0")
        except psycopg.Error:
            return

    @contextmanager
    def _outer(self) -> Iterator[None]:
        self._ask("begin", None)
        try:
            yield
            self._commit()
        except BaseException:
            self.rollback()
            raise

    def _commit(self) -> None:
        if self.closed_locally:
            raise SessionClosedByHandler
        if self.raw.closed:
            raise DatabaseDown("the session was lost before the commit")
        if not self.in_transaction:
            raise TransactionEndedByHandler
        if self.has_failed:
            raise DatabaseError("a statement failed and was ignored: nothing can be committed")
        self._ask("commit", None)

    @contextmanager
    def transaction_with(self, query: Any, params: Params = None) -> Iterator[list[Row]]:
        with self.transaction():
            yield self.all(query, params)

    def commit_and_begin_with(self, query: Any, params: Params = None) -> None:
        return None

    def place_guard(self) -> None: ...

    def rollback(self) -> None:
        if self.in_transaction:
            self._ask("rollback", None)

    def is_closed_by_server(self) -> bool:
        return self.raw.closed

    def settings(self) -> None:
        return None

    @property
    def in_transaction(self) -> bool:
        return self.raw.pgconn.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def has_failed(self) -> bool:
        return self.raw.pgconn.transaction_status == TransactionStatus.INERROR

    @property
    def closed(self) -> bool:
        return self.raw.closed

    @property
    def closed_locally(self) -> bool:
        return self.raw.closed and not self.raw.broken

    def lend(self, is_lent: bool) -> None: ...
    def close_if_busy(self) -> None: ...

    def abort(self) -> None:
        self.raw.close()

    def close(self) -> None:
        self.raw.close()

    def __enter__(self) -> "PlainSession":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class PlainTable:
    """The common part of all three stores. The driver quotes the name, as ``{}``."""

    columns = ""

    def __init__(self, address: Address):
        self.address = address
        self.name = sql.SQL("{}.{}").format(sql.Identifier(address.schema), sql.Identifier(address.table))

    def _sql(self, text: str, **more: sql.Composable) -> sql.Composed:
        return sql.SQL(text).format(table=self.name, **more)

    def create(self, session: Any) -> None:
        session.run(self._sql(f"create table if not exists {{table}} ({self.columns})"))

    def add_body_column(self, session: Any) -> None:
        text = "alter table {table} add bodystring text generated always as (encode(body, 'escape')) stored"
        if "bodystring" not in self._found(session):
            session.run(self._sql(text))

    def faults(self, session: Any, readable: bool = False) -> Iterator[TableFault]:
        found = self._found(session)
        if not found:
            yield TableFault(f"{addressing.canonical(self.address)} does not exist.", "create it", stops=True)
        elif readable and "bodystring" not in found:
            yield TableFault(f"{addressing.canonical(self.address)} has no column bodystring.", "add it")

    def _found(self, session: Any) -> list[str]:
        text = "select column_name from information_schema.columns where table_schema = %s and table_name = %s"
        return [name for (name,) in session.all(text, [self.address.schema, self.address.table])]


class PlainQueue(PlainTable):
    """Implements QueueStore."""

    columns = (
        "id uuid primary key, expires timestamp, headers text not null, body bytea, seq bigint generated by default "
        "as identity unique"
    )

    def insertions(self, rows: Sequence[QueueRow]) -> list[Command]:
        values = sql.SQL(", ").join(
            [sql.SQL("(%s, now() at time zone 'utc' + %s * interval '1 ms', %s, %s)")] * len(rows)
        )
        flat = [each for headers, body, ttbr in rows for each in (uuid.uuid4(), ttbr, headers, body)]
        return [(self._sql("insert into {table} (id, expires, headers, body) values {values}", values=values), flat)]

    def load(self, session: Any, rows: Iterable[QueueRow], spans: Collection[int] = ()) -> bool:
        return False

    def send_as_it_is(self, session: Any, row_id: str, headers: str, body: bytes) -> None:
        text = """insert into {table} (id, headers, body) select
            case when exists (select from {table} where id = %s) then gen_random_uuid() else %s end, %s, %s"""
        session.run(self._sql(text), [uuid.UUID(row_id), uuid.UUID(row_id), headers, body])

    def receiving(self, low: int = LOWEST, most: int = 1) -> Command:
        text = """delete from {table} where id in (
                select id from {table} where seq >= %s order by seq limit %s for update skip locked)
            returning id::text, seq, coalesce(expires <= now() at time zone 'utc', false) as expired, headers, body"""
        return self._sql(text), [low, most]

    def is_received(self, session: Any, row: ReceivedRow) -> NoReturn:
        raise AssertionError("a dialect without batches is not asked")

    def peek(self, session: Any) -> PeekResult:
        text = "select seq from {table} order by seq %s limit 1 for update skip locked"
        with session.transaction():
            head = session.value(self._sql(text % "asc"))
            tail = session.value(self._sql(text % "desc"))
        return PeekResult(0, LOWEST) if head is None or tail is None else PeekResult(tail - head + 1, head)

    def purge(self, session: Any, expired_only: bool = False) -> int:
        text = "delete from {table} where id in (select id from {table} where {what} for update skip locked)"
        what = "expires <= now() at time zone 'utc'" if expired_only else "true"
        purged: int = session.run(self._sql(text, what=sql.SQL(what)))
        return purged


class PlainDelayed(PlainTable):
    """Implements DelayedStore."""

    columns = (
        "id uuid primary key default gen_random_uuid(), headers text not null, body bytea, due timestamptz not null"
    )

    def __init__(self, address: Address, queue: Address):
        super().__init__(address)
        self._queue = PlainQueue(queue)

    def insertions(self, rows: Sequence[DelayedRow]) -> list[Command]:
        text = """insert into {table} (headers, body, due)
            values (%s, %s, coalesce(%s::timestamptz, now() + %s * interval '1 ms'))"""
        return [(self._sql(text), list(row)) for row in rows]

    def move_due(self, session: Any, most: int) -> int:
        text = "select id, headers, body from {table} where due <= now() order by due limit %s for update skip locked"
        due = session.all(self._sql(text), [most])
        for row in due:
            session.run(self._sql("delete from {table} where id = %s"), [row.id])
            ((query, params),) = self._queue.insertions([(row.headers, row.body, None)])
            if not session.run(query, params):
                raise RowsDropped("the queue left a row out")
        return len(due)

    def next_due(self, session: Any) -> float | None:
        seconds = session.value(self._sql("select extract(epoch from min(due) - now()) from {table} where due > now()"))
        return None if seconds is None else float(seconds)


class PlainSubscriptions(PlainTable):
    """Implements SubscriptionStore."""

    columns = "queueaddress varchar(200), endpoint varchar(200), topic varchar(200), primary key (endpoint, topic)"

    def subscribe(self, session: Any, endpoint: str, topic: str, queue: str) -> None:
        with session.transaction():
            self.unsubscribe(session, endpoint, topic)
            session.run(self._sql("insert into {table} values (%s, %s, %s)"), [queue, endpoint, topic])

    def unsubscribe(self, session: Any, endpoint: str, topic: str) -> None:
        session.run(self._sql("delete from {table} where endpoint = %s and topic = %s"), [endpoint, topic])

    def subscribers(self, session: Any, topics: list[str]) -> list[str]:
        places = sql.SQL(", ").join([sql.Placeholder()] * len(topics))
        text = "select distinct queueaddress from {table} where topic in ({places})"
        return [name for (name,) in session.all(self._sql(text, places=places), topics)]


class Plain:
    """Implements what the engine asks of a Dialect (dialects.base)."""

    name = SCHEME
    max_table_bytes = 40
    default_schema = "public"
    supports_notify = False
    multi_catalog = False
    supports_batches = False
    leases = None

    def queue_store(self, address: Address) -> PlainQueue:
        return PlainQueue(address)

    def delayed_store(self, address: Address, queue: Address) -> PlainDelayed:
        return PlainDelayed(address, queue)

    def subscription_store(self, address: Address) -> PlainSubscriptions:
        return PlainSubscriptions(address)

    def canonical(self, address: Address) -> str:
        return addressing.canonical(address)

    def address(self, schema: str, table: str) -> Address:
        return Address(schema, table)

    def shares_sessions(self, dsn: str) -> bool:
        return False

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        return addressing.parse(text, default_schema or self.default_schema)

    def connect(self, dsn: str, **options: Any) -> PlainSession:
        at = "postgresql://" + dsn.split("://", 1)[1]
        try:
            raw = psycopg.connect(at, autocommit=True, row_factory=namedtuple_row, options="-c timezone=UTC")
        except psycopg.Error as error:
            raise DatabaseDown(str(error)) from error
        raw.prepare_threshold = None
        return PlainSession(raw)

    def borrow(self, raw: Any) -> PlainSession:
        return PlainSession(raw)


def plain() -> Plain:
    return Plain()
