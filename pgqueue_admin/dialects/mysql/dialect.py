"""MySQL 8 and MariaDB 10.6 or newer: only an outbox beside business data (contract: dialects.base)."""

from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

from pgqueue_admin.dialects import database_alias
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.mysql import connect_options
from pgqueue_admin.dialects.mysql.decision_store import MySQLDecisions
from pgqueue_admin.dialects.mysql.external_session import external_session
from pgqueue_admin.dialects.mysql.identifiers import IDENTIFIERS
from pgqueue_admin.dialects.mysql.outbox_store import MySQLOutbox
from pgqueue_admin.dialects.mysql.pool import SILENT_SECONDS, SessionPool
from pgqueue_admin.dialects.mysql.query import Query, compose, written
from pgqueue_admin.dialects.mysql.session import MySQLSession
from pgqueue_admin.dialects.mysql.two_phase import MySQLTwoPhase
from pgqueue_admin.dialects.statements import Compose, StatementFolder


class MySQL(StatementFolder):
    """A schema is a database there; without one, a table is in the DSN's database."""

    max_table_bytes = IDENTIFIERS.longest
    default_schema = IDENTIFIERS.default_schema
    supports_notify = False
    multi_catalog = False
    supports_batches = False
    shows_outboxes = True
    lists_roles = False
    leases = None
    schedules = None
    crossings = None
    waiting_messages = None
    delayed_messages = None
    isolations: Mapping[str, str] = {
        "read_committed": "read committed",
        "repeatable_read": "repeatable read",
        "serializable": "serializable",
    }

    alias = ""

    def __init__(self, compose: Compose = compose) -> None:
        super().__init__("mysql", Path(__file__).parent, compose)

    def aliased(self, alias: str) -> "MySQL":
        return _aliased(alias) if alias else mysql()

    def native(self, address: Address) -> Address:
        return address

    def outbox_store(self, address: Address) -> MySQLOutbox:
        return MySQLOutbox(self, address)

    def decision_store(self, address: Address) -> MySQLDecisions:
        return MySQLDecisions(self, address)

    @cached_property
    def two_phase_commit(self) -> MySQLTwoPhase:
        return MySQLTwoPhase(self)

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        return Address(schema, IDENTIFIERS.outbox_table(endpoint, prefix))

    def canonical(self, address: Address) -> str:
        return IDENTIFIERS.table(address)

    def address(self, schema: str, table: str) -> Address:
        return Address(schema, table)

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
    ) -> MySQLSession:
        raw = connect_options.open_raw(
            dsn,
            isolation=self.isolations[isolation or "read_committed"],
            application_name=application_name,
            read_only=read_only,
            statement_timeout=statement_timeout,
            connect_timeout=connect_timeout,
            answer_seconds=answer_seconds,
        )
        return MySQLSession(raw, answer_seconds)

    def borrow(self, raw: Any) -> MySQLSession:
        return external_session(raw)

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
        """A pool of monitoring sessions: no row locks; table locks wait up to the answer timeout. Raises ValueError."""
        connect_options.arguments(dsn)

        def connect() -> MySQLSession:
            return self.connect(
                dsn,
                application_name=application_name,
                read_only=read_only,
                statement_timeout=statement_timeout,
                connect_timeout=SILENT_SECONDS,
                answer_seconds=answer_seconds,
            )

        return SessionPool(connect, self)

    def queue_store(self, *names: Any) -> NoReturn:
        raise LookupError("There are no queues on MySQL: it may have the outbox of an endpoint, Outbox(dsn=…).")

    delayed_store = subscription_store = parse_address = queue_store


@cache
def mysql() -> MySQL:
    return MySQL()


class AliasedMySQL(MySQL):
    """A database monitored beside the queues' one: every schema has the alias as prefix."""

    def __init__(self, alias: str) -> None:
        super().__init__(self._composed)
        self.alias = alias

    def native(self, address: Address) -> Address:
        return database_alias.native(self.alias, address)

    def address(self, schema: str, table: str) -> Address:
        return database_alias.named(self.alias, Address(schema, table))

    def _composed(self, text: str, identifiers: dict[str, Any]) -> Query:
        mine = {key: self.native(value) if isinstance(value, Address) else value for key, value in identifiers.items()}
        return compose(text, mine)


@cache
def _aliased(alias: str) -> AliasedMySQL:
    return AliasedMySQL(alias)
