"""The dialect contract: statements, addresses, sessions, stores, and capability questions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pgqueue_admin.dialects.address import Address
from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.dialects.crossing_store import CrossingStore
from pgqueue_admin.dialects.decision_store import DecisionStore
from pgqueue_admin.dialects.delayed_store import DelayedStore
from pgqueue_admin.dialects.lease_store import LeaseStore
from pgqueue_admin.dialects.outbox_store import OutboxStore
from pgqueue_admin.dialects.queue_store import QueueStore
from pgqueue_admin.dialects.schedule_store import ScheduleStore
from pgqueue_admin.dialects.statements import Statements
from pgqueue_admin.dialects.subscription_store import SubscriptionStore
from pgqueue_admin.dialects.two_phase import TwoPhase
from pgqueue_admin.dialects.waiting_store import DelayedActStore, WaitingStore


class Dialect(Protocol):
    """The seam between the rooms and a kind of database. Statement files and names are the same in every dialect."""

    name: str
    max_table_bytes: int
    default_schema: str

    outbox: Statements  # records of handled messages and their pending sends
    subscription: Statements  # subscribers of events, as pages show them
    monitor: Statements  # discovery, depth, in flight
    rights: Statements  # rights of the role
    browse: Statements  # reading messages page by page
    schema: Statements  # the engine's own tables, and their version
    archive: Statements  # dead and finished messages
    failure_groups: Statements  # dead messages grouped by failure
    operation: Statements  # plan and progress of an act on many messages
    alerts: Statements  # reading the archive from a position
    move_to_archive: Statements  # moves a message that crashes its receivers
    history: Statements  # reading finished and dead messages, each row once

    supports_notify: bool  # a commit can wake a listener
    multi_catalog: bool  # an address may name a database, too: ``within(dsn)`` is the dialect of the DSN's database
    sees_locked_rows: bool  # monitoring reads rows in flight, too; else it skips them
    searches_waiting: bool  # waiting messages can be searched for texts, like the archive
    indexes_ids: bool  # a row id finds a message without a table scan
    limits_statements: bool  # the server has a statement timeout; else we cancel, or close the session
    lists_roles: bool  # rights of a role are queried as on PostgreSQL
    shows_outboxes: bool  # pages and warnings inspect outbox tables
    supports_batches: bool  # one message of a batch can be undone alone, and an ended transaction's outcome be read

    @property
    def isolations(self) -> Mapping[str, str]:
        """The isolation levels of sessions, each with its name in SQL."""

    def queue_store(self, address: Address) -> QueueStore:
        """A queue table; keep the store, since its statements are composed on creation."""

    def delayed_store(self, address: Address, queue: Address) -> DelayedStore:
        """A delayed table, and the queue that its due messages move to."""

    def subscription_store(self, address: Address) -> SubscriptionStore:
        """The table of subscriptions."""

    @property
    def leases(self) -> LeaseStore | None:
        """The lease queue; None if not supported."""

    @property
    def schedules(self) -> ScheduleStore | None:
        """Schedules; None if not supported."""

    def outbox_store(self, address: Address) -> OutboxStore:
        """The table of an endpoint's outbox. Raises LookupError if the dialect has none."""

    def decision_store(self, address: Address) -> DecisionStore:
        """The coordinator's decision table, beside its outbox. Raises LookupError if the dialect has no outbox."""

    @property
    def two_phase_commit(self) -> TwoPhase | None:
        """The database as a participant of two-phase commits; None if not supported."""

    @property
    def crossings(self) -> CrossingStore | None:
        """For acts that span this database and the first; None if messages cannot cross."""

    @property
    def waiting_messages(self) -> WaitingStore | None:
        """For acts on waiting messages of a database beside the first; None if ``crossings`` is None."""

    @property
    def delayed_messages(self) -> DelayedActStore | None:
        """The same for delayed messages."""

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        """The outbox table's address by the original's rule (outbox sheet 2). Raises AddressUnreadable if invalid."""

    def aliased(self, alias: str) -> "Dialect":
        """This dialect for a database monitored beside the first (dialects.database_alias); for the first, if empty."""

    def native(self, address: Address) -> Address:
        """The address as the catalog has it, without alias. Raises AddressUnreadable if it is of another database."""

    def canonical(self, address: Address) -> str:
        """The address as headers have it, e.g. ``"public"."Sales"``."""

    def address(self, schema: str, table: str) -> Address:
        """The address of a table by its catalog names. Raises AddressUnreadable if they form none."""

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        """Read an address as an endpoint would (wire sheet 1.4). Raises AddressUnreadable."""

    def shares_sessions(self, dsn: str) -> bool:
        """Whether a pooler lends another session per transaction: locks, LISTEN and settings do not last.

        Raises DatabaseDown.
        """

    def without_password(self, dsn: str) -> str:
        """The DSN's server, database and user, without secrets."""

    def written(self, query: Any) -> str:
        """A statement without parameters, as a person can run it."""

    def connect(
        self,
        dsn: str,
        *,
        application_name: str = "pgqueue-admin",
        read_only: bool = False,
        statement_timeout: float | None = None,
        connect_timeout: float = 5,
        prepared_statements: int = 100,
        fail_fast: bool = False,
        for_handlers: bool = False,
        answer_seconds: float | None = None,
        isolation: str = "",
    ) -> Connection:
        """Open a session in UTC with only the catalog on its search path. ``statement_timeout`` is in seconds.
        Raises DatabaseDown.

        ``for_handlers``: handlers run their SQL in it, with the search path of the DSN, the role or the database. Our
        statements in it must qualify every name.

        ``fail_fast``: a server that accepts us but does not answer for 5 s is down, e.g. a pooler with no free session.
        ``answer_seconds``: close the session after so many without an answer, whatever the server does; None: never.
        ``isolation``: of all its transactions, one of ``isolations``. ``prepared_statements``: the most that are kept;
        further statements are planned at each execution.
        """

    def borrow(self, raw: Any) -> Connection:
        """Wrap the caller's open driver connection; it begins and ends no transaction. Raises TypeError."""

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
    ) -> "Pool":
        """A pool of such sessions. ``lock_timeout``: seconds that a statement waits for a lock."""


class Pool(Protocol):
    """Sessions kept open between uses."""

    def connection(self, answer_seconds: float | None = None) -> AbstractContextManager[Connection]:
        """Borrow a session, waiting at most 5 s while all are lent. Raises DatabaseDown, at once if refused.

        ``answer_seconds``: answer timeout for this use, instead of the pool's.
        """

    def close(self) -> None: ...
