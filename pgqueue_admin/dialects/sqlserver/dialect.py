"""SQL Server: the transport's tables and an outbox (contract: dialects.base)."""

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

from pgqueue_admin.dialects import database_alias
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.sqlserver import addressing, connect_options, driver
from pgqueue_admin.dialects.sqlserver.addressing import Place
from pgqueue_admin.dialects.sqlserver.crossing_store import AliasedCrossings, SQLServerCrossings
from pgqueue_admin.dialects.sqlserver.delayed_store import SQLServerDelayed
from pgqueue_admin.dialects.sqlserver.external_session import external_session
from pgqueue_admin.dialects.sqlserver.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.sqlserver.looking_query import LookingQuery, compose_looking
from pgqueue_admin.dialects.sqlserver.outbox_store import SQLServerOutbox
from pgqueue_admin.dialects.sqlserver.pool import SILENT_SECONDS, SessionPool
from pgqueue_admin.dialects.sqlserver.query import compose, written
from pgqueue_admin.dialects.sqlserver.queue_store import SQLServerQueue
from pgqueue_admin.dialects.sqlserver.session import SQLServerSession
from pgqueue_admin.dialects.sqlserver.subscription_store import SQLServerSubscriptions
from pgqueue_admin.dialects.sqlserver.waiting_store import SQLServerDelayedActs, SQLServerWaiting
from pgqueue_admin.dialects.statements import Compose, StatementFolder

LOCK_SECONDS = 25.0  # lock timeout of a statement, shorter than the answer timeout


class SQLServer(StatementFolder):
    """``catalog``: the DSN's database, the default of addresses."""

    max_table_bytes = IDENTIFIERS.longest
    default_schema = IDENTIFIERS.default_schema
    supports_notify = False
    supports_batches = True
    shows_outboxes = False
    multi_catalog = True
    leases = None
    schedules = None
    two_phase_commit = None
    isolations: Mapping[str, str] = {
        name: name for name in ("read_committed", "repeatable_read", "serializable", "snapshot")
    }

    sees_locked_rows = False
    searches_waiting = False
    indexes_ids = False
    limits_statements = False
    lists_roles = False
    alias = ""

    def __init__(self, catalog: str = "", compose: Compose = compose) -> None:
        super().__init__("sqlserver", Path(__file__).parent, compose)
        self.catalog = catalog

    def aliased(self, alias: str) -> "SQLServer":
        return _aliased(self.catalog, alias) if alias else _of_catalog(self.catalog)

    def native(self, address: Address) -> Address:
        return address

    def within(self, dsn: str) -> "SQLServer":
        return _of_catalog(connect_options.read(dsn).catalog)

    def queue_store(self, address: Address) -> SQLServerQueue:
        return SQLServerQueue(self, address)

    def delayed_store(self, address: Address, queue: Address) -> SQLServerDelayed:
        return SQLServerDelayed(self, address, queue)

    def subscription_store(self, address: Address) -> SQLServerSubscriptions:
        return SQLServerSubscriptions(self, address)

    def outbox_store(self, address: Address) -> SQLServerOutbox:
        return SQLServerOutbox(self, address)

    def decision_store(self, address: Address) -> NoReturn:
        raise LookupError("An outbox on SQL Server cannot enlist other databases yet.")

    @cached_property
    def crossings(self) -> SQLServerCrossings:
        return SQLServerCrossings(self)

    @cached_property
    def waiting_messages(self) -> SQLServerWaiting:
        return SQLServerWaiting(_of_catalog(self.catalog), self.native)

    @cached_property
    def delayed_messages(self) -> SQLServerDelayedActs:
        return SQLServerDelayedActs(_of_catalog(self.catalog), self.native)

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        return Address(schema, IDENTIFIERS.outbox_table(endpoint, prefix))

    def canonical(self, address: Address) -> str:
        return addressing.canonical(address, self.catalog)

    def in_full(self, address: Address) -> str:
        """``[catalog].[schema].[table]``, also where the catalog is the session's own."""
        where = addressing.place(address.schema)
        return addressing.qualified(address._replace(schema=str(Place(where.schema, where.catalog or self.catalog))))

    def address(self, schema: str, table: str) -> Address:
        return Address(schema, table)

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        return addressing.parse(text, default_schema or self.default_schema, self.catalog)

    def shares_sessions(self, dsn: str) -> bool:
        return False

    def without_password(self, dsn: str) -> str:
        said = connect_options.read(dsn)
        return f"mssql://{f'{said.user}@' if said.user else ''}{said.host}:{said.port}/{said.catalog}"

    def written(self, query: Any) -> str:
        return written(query)

    def connect(
        self,
        dsn: str,
        *,
        application_name: str = "pgqueue-admin",
        read_only: bool = False,
        statement_timeout: float | None = None,
        connect_timeout: float = 5,
        prepared_statements: int = 0,
        fail_fast: bool = False,
        for_handlers: bool = False,
        answer_seconds: float | None = None,
        isolation: str = "",
    ) -> SQLServerSession:
        """``statement_timeout`` is enforced by us, like ``answer_seconds``: the server has none.

        ``read_only`` requests a readable replica; only the login's rights limit what the session can do.
        """
        limits = [each for each in (statement_timeout, answer_seconds) if each is not None]
        lock_seconds = min([LOCK_SECONDS, *(each * 5 / 6 for each in limits)])
        return self._open(
            dsn, application_name, read_only, min(limits, default=None), connect_timeout, isolation, lock_seconds
        )

    def _open(
        self,
        dsn: str,
        application_name: str,
        read_only: bool,
        answer_seconds: float | None,
        connect_seconds: float,
        isolation: str,
        lock_seconds: float,
    ) -> SQLServerSession:
        options = connect_options.read(dsn)
        raw, wire = driver.connect(
            options, application_name=application_name, read_only=read_only, seconds=connect_seconds
        )
        wire.logged_in(answer_seconds)
        session = SQLServerSession(raw, self.session, wire, options.peek_method)
        session.dialect, session.only_looks = self, read_only
        self._begin(session, isolation, lock_seconds)
        return session

    def _begin(self, session: SQLServerSession, isolation: str, lock_seconds: float) -> None:
        try:
            session.run(self.session.first(lock_ms=round(lock_seconds * 1000)))
            session.run(getattr(self.session, self.isolations[isolation or "read_committed"])())
            if session.only_looks:
                session.run(self.session.looks())
        except BaseException:
            session.close()
            raise

    def borrow(self, raw: Any) -> SQLServerSession:
        return external_session(raw, self.session)

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
        """A pool of monitoring sessions. A statement's timeout is that of its answer: the server has none."""
        limits = [each for each in (statement_timeout, answer_seconds) if each is not None]
        answer, lock = min(limits, default=None), lock_timeout or LOCK_SECONDS

        def connect() -> SQLServerSession:
            return self._open(dsn, application_name, read_only, answer, SILENT_SECONDS, "", lock)

        return SessionPool(connect, max_size, answer)


@cache
def sqlserver() -> SQLServer:
    return SQLServer()


class AliasedSQLServer(SQLServer):
    """A database monitored beside the first: every schema has the alias as prefix.

    Its statements have the parameters and results of PostgreSQL's of the same name. Only crossings write there.
    """

    def __init__(self, catalog: str, alias: str) -> None:
        super().__init__(catalog, self._composed)
        self.alias = alias

    def native(self, address: Address) -> Address:
        return database_alias.native(self.alias, address)

    def address(self, schema: str, table: str) -> Address:
        """Raises AddressUnreadable for a name that an address cannot contain."""
        found = Address(schema, table)
        if table:  # else the address stands for a schema
            addressing.qualified(found)
        return database_alias.named(self.alias, found)

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        return database_alias.named(self.alias, super().parse_address(text, default_schema))

    def queue_store(self, address: Address) -> SQLServerQueue:
        return _of_catalog(self.catalog).queue_store(self.native(address))

    def delayed_store(self, address: Address, queue: Address) -> SQLServerDelayed:
        return _of_catalog(self.catalog).delayed_store(self.native(address), self.native(queue))

    def subscription_store(self, address: Address) -> SQLServerSubscriptions:
        return _of_catalog(self.catalog).subscription_store(self.native(address))

    @cached_property
    def crossings(self) -> SQLServerCrossings:
        return AliasedCrossings(_of_catalog(self.catalog), self)

    def _composed(self, text: str, identifiers: dict[str, Any]) -> LookingQuery:
        mine = {key: self.native(value) if isinstance(value, Address) else value for key, value in identifiers.items()}
        return compose_looking(text, {"numbers": self.monitor.numbers, **mine} if "{numbers}" in text else mine)


@cache
def _aliased(catalog: str, alias: str) -> AliasedSQLServer:
    return AliasedSQLServer(catalog, alias)


@cache
def _of_catalog(catalog: str) -> SQLServer:
    return SQLServer(catalog)
