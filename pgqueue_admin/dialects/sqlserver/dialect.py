"""SQL Server: the transport's tables and an outbox (contract: dialects.base)."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.sqlserver import addressing, connect_options, driver
from pgqueue_admin.dialects.sqlserver.addressing import Place
from pgqueue_admin.dialects.sqlserver.delayed_store import SQLServerDelayed
from pgqueue_admin.dialects.sqlserver.external_session import external_session
from pgqueue_admin.dialects.sqlserver.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.sqlserver.outbox_store import SQLServerOutbox
from pgqueue_admin.dialects.sqlserver.query import compose, written
from pgqueue_admin.dialects.sqlserver.queue_store import SQLServerQueue
from pgqueue_admin.dialects.sqlserver.session import SQLServerSession
from pgqueue_admin.dialects.sqlserver.subscription_store import SQLServerSubscriptions
from pgqueue_admin.dialects.statements import StatementFolder

LOCK_SECONDS = 25.0  # a statement waits so long for others' locks: shorter than an answer is waited for


class SQLServer(StatementFolder):
    """``catalog``: the database of the DSN, where an address that names none lies."""

    max_table_bytes = IDENTIFIERS.longest
    default_schema = IDENTIFIERS.default_schema
    supports_notify = False
    supports_batches = False
    multi_catalog = True
    leases = None
    schedules = None
    two_phase_commit = None
    isolations: Mapping[str, str] = {
        name: name for name in ("read_committed", "repeatable_read", "serializable", "snapshot")
    }

    def __init__(self, catalog: str = "") -> None:
        super().__init__("sqlserver", Path(__file__).parent, compose)
        self.catalog = catalog

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
        impatient: bool = False,
        for_handlers: bool = False,
        answer_seconds: float | None = None,
        isolation: str = "",
    ) -> SQLServerSession:
        """``statement_timeout`` is a limit of ours, as ``answer_seconds``: the server has none.

        ``read_only`` asks for a replica that may be read; what else it may do, its rights say.
        """
        options = connect_options.read(dsn)
        raw, wire = driver.connect(
            options, application_name=application_name, read_only=read_only, seconds=connect_timeout
        )
        limits = [each for each in (statement_timeout, answer_seconds) if each is not None]
        wire.logged_in(min(limits, default=None))
        session = SQLServerSession(raw, self.session, wire, options.peek_method)
        self._begin(session, isolation, min([LOCK_SECONDS, *(each * 5 / 6 for each in limits)]))
        return session

    def _begin(self, session: SQLServerSession, isolation: str, lock_seconds: float) -> None:
        try:
            session.run(self.session.first(lock_ms=round(lock_seconds * 1000)))
            session.run(getattr(self.session, self.isolations[isolation or "read_committed"])())
        except BaseException:
            session.close()
            raise

    def borrow(self, raw: Any) -> SQLServerSession:
        return external_session(raw, self.session)

    def pool(self, *dsn: Any, **options: Any) -> NoReturn:
        raise LookupError("There are no pages of queues on SQL Server yet.")


@cache
def sqlserver() -> SQLServer:
    return SQLServer()


@cache
def _of_catalog(catalog: str) -> SQLServer:
    return SQLServer(catalog)
