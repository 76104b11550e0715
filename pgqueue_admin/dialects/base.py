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

    outbox: Statements  # what was handled, and what of it is not sent
    subscription: Statements  # who wants which events, as pages show them
    monitor: Statements  # discovery, depth, in flight
    rights: Statements  # what the role may do
    browse: Statements  # reading messages page by page
    schema: Statements  # the engine's own tables, and their version
    archive: Statements  # dead and finished messages
    failure_groups: Statements  # dead messages by what failed
    operation: Statements  # what an act on many messages is to do, and has done
    alerts: Statements  # reading on in the archive
    move_to_archive: Statements  # one message that ends each process which takes it
    history: Statements  # reading what finished and died, each row once

    supports_notify: bool  # a commit can wake a listener
    multi_catalog: bool  # an address may name a database, too: ``within(dsn)`` is the dialect that knows the DSN's
    sees_locked_rows: bool  # a look sees what somebody has in hand, and may tell; else it reads past that
    searches_waiting: bool  # what waits is looked through for texts, as the archive is
    indexes_ids: bool  # a message is found by the id of its row without reading the table
    limits_statements: bool  # the server ends what takes too long; else we ask it to, or give the session up
    lists_roles: bool  # what a session's role may do is asked as PostgreSQL is asked
    shows_outboxes: bool  # outbox tables are looked into from outside, by pages and warnings
    supports_batches: bool  # one message of a batch is undone alone, and an ended transaction says how it ended

    @property
    def isolations(self) -> Mapping[str, str]:
        """The isolation levels that a session may have, each as its database says it."""

    def queue_store(self, address: Address) -> QueueStore:
        """A queue table; made once and kept, since its statements are composed with it."""

    def delayed_store(self, address: Address, queue: Address) -> DelayedStore:
        """A delayed table, and the queue that what is due goes to."""

    def subscription_store(self, address: Address) -> SubscriptionStore:
        """The table of who wants which events."""

    @property
    def leases(self) -> LeaseStore | None:
        """The lease queue, where it has one."""

    @property
    def schedules(self) -> ScheduleStore | None:
        """What is sent by the clock, where it can."""

    def outbox_store(self, address: Address) -> OutboxStore:
        """The table of an endpoint's outbox. Raises LookupError where the dialect has none."""

    def decision_store(self, address: Address) -> DecisionStore:
        """Of the coordinator whose outbox lies beside it. Raises LookupError where the dialect has no outbox."""

    @property
    def two_phase_commit(self) -> TwoPhase | None:
        """As a participant; None where the database cannot be one."""

    @property
    def crossings(self) -> CrossingStore | None:
        """Of an act over this database and the first; None where messages neither come from here nor go here."""

    @property
    def waiting_messages(self) -> WaitingStore | None:
        """Of acts on what waits in a database beside the first; None where ``crossings`` is."""

    @property
    def delayed_messages(self) -> DelayedActStore | None:
        """Likewise, on what is delayed there."""

    def outbox_address(self, endpoint: str, schema: str, prefix: str | None = None) -> Address:
        """By the original's rule (outbox sheet 2). Raises AddressUnreadable where its names allow none."""

    def aliased(self, alias: str) -> "Dialect":
        """The same of a database that is looked at beside the first (dialects.aliases); empty: of the first."""

    def native(self, address: Address) -> Address:
        """By the names that the catalog has. Raises AddressUnreadable where it is of another database."""

    def canonical(self, address: Address) -> str:
        """The address as it stands in headers, e.g. ``"public"."Sales"``."""

    def address(self, schema: str, table: str) -> Address:
        """Of a table by its two names, exactly as the catalog has them. Raises AddressUnreadable where it has none."""

    def parse_address(self, text: str, default_schema: str | None = None) -> Address:
        """Read an address as an endpoint would (wire sheet 1.4). Raises AddressUnreadable."""

    def shares_sessions(self, dsn: str) -> bool:
        """Whether a pooler lends them anew with each transaction: locks, LISTEN and settings do not hold. Raises
        DatabaseDown."""

    def without_password(self, dsn: str) -> str:
        """Where a server is, and as whom; never with which secret."""

    def written(self, query: Any) -> str:
        """A statement as a person may run it; one without parameters."""

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
        """Open a session in UTC, in which names are looked up in the catalog alone. ``statement_timeout`` is in
        seconds. Raises DatabaseDown.

        ``for_handlers``: others' SQL runs in it, too, by the search path that the address, the role or the database
        says. Of our statements only those that name everything in full may be asked there.

        ``fail_fast``: down is also who lets us in and does not answer for 5 s, as a pooler without a session to lend.
        ``answer_seconds``: after so many without an answer the session is given up, whatever the server does; None:
        never. ``isolation``: of each of its transactions, one of ``isolations``. ``prepared_statements``: how many are
        kept; who asks the same of more tables plans each time anew.
        """

    def borrow(self, raw: Any) -> Connection:
        """The driver's own open connection, of whoever calls: nothing is begun or ended in it. Raises TypeError."""

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
        """A pool of such sessions. ``lock_timeout``: seconds that a statement waits for somebody else's lock."""


class Pool(Protocol):
    """Sessions kept open between uses."""

    def connection(self, answer_seconds: float | None = None) -> AbstractContextManager[Connection]:
        """Borrow a session, waiting at most 5 s for one that is lent. Raises DatabaseDown, at once where refused.

        ``answer_seconds``: for this once, where it is not to be the pool's.
        """

    def close(self) -> None: ...
