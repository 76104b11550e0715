"""PostgreSQL: statements, addresses and sessions."""

from collections.abc import Mapping
from functools import cache, cached_property, lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from psycopg import sql

from pgqueue_admin.dialects import database_alias
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.postgresql import addressing, connect_options, pooler_check, session
from pgqueue_admin.dialects.postgresql.crossing_store import PostgreSQLCrossings
from pgqueue_admin.dialects.postgresql.decision_store import PostgreSQLDecisions
from pgqueue_admin.dialects.postgresql.delayed_store import PostgreSQLDelayed
from pgqueue_admin.dialects.postgresql.external_session import external_session
from pgqueue_admin.dialects.postgresql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.postgresql.lease_store import PostgreSQLLeases
from pgqueue_admin.dialects.postgresql.outbox_store import PostgreSQLOutbox
from pgqueue_admin.dialects.postgresql.prepared_session import PreparedSession
from pgqueue_admin.dialects.postgresql.query import Query, written
from pgqueue_admin.dialects.postgresql.queue_store import PostgreSQLQueue
from pgqueue_admin.dialects.postgresql.schedule_store import PostgreSQLSchedules
from pgqueue_admin.dialects.postgresql.session_pool import SessionPool
from pgqueue_admin.dialects.postgresql.subscription_store import PostgreSQLSubscriptions
from pgqueue_admin.dialects.postgresql.two_phase import PostgreSQLTwoPhase
from pgqueue_admin.dialects.postgresql.waiting_store import PostgreSQLDelayedActs, PostgreSQLWaiting
from pgqueue_admin.dialects.statements import Compose, Statement, StatementFolder


def _identifier(value: Any) -> sql.Composable:
    """Quote an identifier for a query: the driver would read a % as a parameter, libpq stop at a NUL."""
    if isinstance(value, int):
        return sql.Literal(value)
    if isinstance(value, tuple) and not isinstance(value, Address):
        return sql.SQL(", ").join(map(_identifier, value))
    quoted = addressing.canonical(value) if isinstance(value, Address) else addressing.quote(value)
    if "\0" in quoted:
        raise AddressUnreadable(f"{quoted!r} cannot be a name: it holds a NUL character")
    return sql.SQL(quoted.replace("%", "%%"))


@lru_cache(maxsize=16_384)  # more than a session keeps prepared: a recomposed query would be prepared again
def _composed(text: str, identifiers: tuple[tuple[str, Any], ...]) -> Query:
    """A Statement among the identifiers is a shared part; it may contain identifiers of the whole."""
    parts = {key: value for key, value in identifiers if isinstance(value, Statement)}
    for _ in parts:  # a part may contain other parts, in any order
        for key, part in parts.items():
            text = text.replace(f"{{{key}}}", part.text)
    names = {key: _identifier(value) for key, value in identifiers if key not in parts}
    # one piece: the driver joins pieces at each execution
    whole = sql.SQL(sql.SQL(text).format(**names).as_string(None))
    # tested without names, which may contain a semicolon; a semicolon elsewhere, e.g. in a text, only costs time
    return Query([whole], is_single=";" not in text)


def compose(text: str, identifiers: dict[str, Any]) -> Query:
    """Fill ``{names}`` of a statement, quoted: an Address as schema.table, a text as one identifier, a tuple as many.

    A number is inserted literally: the planner needs to see e.g. a limit, which a parameter would hide.
    """
    return _composed(text, tuple(identifiers.items()))


class PostgreSQL(StatementFolder):
    """The dialect of queue tables on PostgreSQL 14 and newer (contract: dialects.base.Dialect)."""

    max_table_bytes = 55  # wire sheet 1.4
    default_schema = "public"
    supports_notify = True
    multi_catalog = False
    sees_locked_rows = True
    searches_waiting = True
    indexes_ids = True
    limits_statements = True
    lists_roles = True
    supports_batches = True
    shows_outboxes = True
    isolations: Mapping[str, str] = {
        "read_committed": "read committed",
        "repeatable_read": "repeatable read",
        "serializable": "serializable",
        "snapshot": "repeatable read",  # a snapshot on PostgreSQL
    }

    alias = ""

    def __init__(self, compose: Compose = compose) -> None:
        super().__init__("postgresql", Path(__file__).parent, compose)

    def aliased(self, alias: str) -> "PostgreSQL":
        return _aliased(alias) if alias else postgresql()

    def native(self, address: Address) -> Address:
        return address

    @cached_property
    def leases(self) -> PostgreSQLLeases:
        return PostgreSQLLeases(self.lease)

    @cached_property
    def schedules(self) -> PostgreSQLSchedules:
        return PostgreSQLSchedules(self.schedule)

    def queue_store(self, address: Address) -> PostgreSQLQueue:
        return PostgreSQLQueue(self, address)

    def delayed_store(self, address: Address, queue: Address) -> PostgreSQLDelayed:
        return PostgreSQLDelayed(self, address, queue)

    def subscription_store(self, address: Address) -> PostgreSQLSubscriptions:
        return PostgreSQLSubscriptions(self, address)

    def outbox_store(self, address: Address) -> PostgreSQLOutbox:
        return PostgreSQLOutbox(self, address)

    def decision_store(self, address: Address) -> PostgreSQLDecisions:
        return PostgreSQLDecisions(self, address)

    @cached_property
    def two_phase_commit(self) -> PostgreSQLTwoPhase:
        return PostgreSQLTwoPhase(self)

    @cached_property
    def crossings(self) -> PostgreSQLCrossings:
        return PostgreSQLCrossings(self.crossing, self.operation.hold_table)

    @cached_property
    def waiting_messages(self) -> PostgreSQLWaiting:
        return PostgreSQLWaiting(self)

    @cached_property
    def delayed_messages(self) -> PostgreSQLDelayedActs:
        return PostgreSQLDelayedActs(self)

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        return Address(schema, IDENTIFIERS.outbox_table(endpoint, prefix))

    def canonical(self, address: Address) -> str:
        return addressing.canonical(address)

    def address(self, schema: str, table: str) -> Address:
        return Address(schema, table)

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        return addressing.parse(text, default_schema or self.default_schema)

    def connect(self, dsn: str, *, isolation: str = "", **kwargs: Any) -> PreparedSession:
        session = PreparedSession(connect_options.open_raw(dsn, **kwargs))
        if isolation and isolation != "read_committed":  # the initial level of all sessions
            session.run(f"set session characteristics as transaction isolation level {self.isolations[isolation]}")
        session.dialect = self
        return session

    def borrow(self, raw: Any) -> session.Session:
        session = external_session(raw)
        session.dialect = self
        return session

    def shares_sessions(self, dsn: str) -> bool:
        asked: dict[str, Any] = {"application_name": "pgqueue start", "prepared_statements": 0, "fail_fast": True}
        opened = partial(self.connect, dsn, answer_seconds=pooler_check.ANSWER_SECONDS, **asked)
        return not pooler_check.has_own_sessions(opened)

    def without_password(self, dsn: str) -> str:
        said = connect_options.said_by(dsn)
        shown = {name: said.get(name) for name in ("user", "host", "port", "dbname")}
        is_far = shown["host"] and not shown["host"].startswith("/")
        return unquote(connect_options.address(shown if is_far else {**shown, "host": "local socket"}))

    def written(self, query: Any) -> str:
        return written(query)

    def pool(
        self,
        dsn: str,
        *,
        application_name: str = "pgqueue-admin",
        read_only: bool = False,
        statement_timeout: float | None = None,
        lock_timeout: float | None = None,
        max_size: int = 8,
        answer_seconds: float | None = None,
    ) -> SessionPool:
        settings = connect_options.options(dsn, application_name, read_only, statement_timeout, lock_timeout)
        seconds = statement_timeout
        return SessionPool(dsn, settings, max_size, answer_seconds, looks=read_only, seconds=seconds, dialect=self)


@cache
def postgresql() -> PostgreSQL:
    return PostgreSQL()


class AliasedPostgreSQL(PostgreSQL):
    """A database monitored beside the first: every schema has the alias as prefix.

    Stores use catalog names without the alias, because their messages are for the table's owner.
    """

    def __init__(self, alias: str) -> None:
        super().__init__(self._composed)
        self.alias = alias

    def native(self, address: Address) -> Address:
        return database_alias.native(self.alias, address)

    def address(self, schema: str, table: str) -> Address:
        return database_alias.named(self.alias, Address(schema, table))

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        return database_alias.named(self.alias, super().parse_address(text, default_schema))

    def queue_store(self, address: Address) -> PostgreSQLQueue:
        return postgresql().queue_store(self.native(address))

    def delayed_store(self, address: Address, queue: Address) -> PostgreSQLDelayed:
        return postgresql().delayed_store(self.native(address), self.native(queue))

    def subscription_store(self, address: Address) -> PostgreSQLSubscriptions:
        return postgresql().subscription_store(self.native(address))

    def _composed(self, text: str, identifiers: dict[str, Any]) -> Query:
        mine = {key: self.native(value) if isinstance(value, Address) else value for key, value in identifiers.items()}
        return compose(text, mine)


@cache
def _aliased(alias: str) -> AliasedPostgreSQL:
    return AliasedPostgreSQL(alias)
