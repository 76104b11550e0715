"""The outbox settings of an endpoint: one immutable value, all faults reported at once."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, Protocol

from pgqueue_admin.dialects import Dialect, dialect_for
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.dialects.outbox_store import Isolation
from pgqueue_admin.outbox.first_seen import FirstSeen
from pgqueue_admin.transport.client import Client

Concurrency = Literal["optimistic", "pessimistic"]
LONGEST = timedelta(days=3650)
_DATABASE_NAME = re.compile(r"[a-z0-9_]{1,31}")


class Relayed(Protocol):
    """Records what the relay sends. Its exceptions are logged, and stop nothing."""

    def __call__(self, outbox: str, records: int, messages: int) -> None:
        """``outbox``: the table's canonical address. The messages are sent and committed."""


@dataclass(frozen=True, slots=True)
class OutboxSettings:
    """docs/reference/outbox.md describes each setting."""

    # URL of the database that has the outbox and the business data; empty: the queues' own.
    dsn: str = ""
    # Schema of its table; empty: the endpoint's, or the dialect's default in another database.
    schema: str = ""
    # Prefix of its table's name; None: from the endpoint's name, as the original.
    prefix: str | None = None
    # `optimistic`: two copies at once may both run, one is undone. `pessimistic`: the second waits.
    concurrency: Concurrency = "optimistic"
    # `read_committed`, `repeatable_read`, `serializable` or `snapshot`, where each database has it. None:
    # `read_committed`, and `serializable` with `databases`.
    isolation: Isolation | None = None
    # URLs by name: writes by `context.enlist(name)` commit together with the outbox.
    databases: Mapping[str, str] = field(default_factory=dict, hash=False)
    # How long a record is kept after its dispatch: later a duplicate is not recognised.
    keep: timedelta = timedelta(days=7)
    # Time between two clean-ups; None: the table is cleaned up elsewhere.
    clean_every: timedelta | None = timedelta(minutes=1)
    # Age at which the relay sends an undispatched record; None: only a duplicate of its message does.
    relay_after: timedelta | None = timedelta(minutes=1)
    # How long a second copy waits while the first inserts the same record; then it is received again.
    wait: timedelta = timedelta(seconds=10)
    # Remembers since when records wait in a table without `CreatedAt`; None: the process, until it ends.
    first_seen: FirstSeen | None = field(default=None, compare=False, repr=False)
    # Called after each relay run that sent something; None: the log alone.
    relayed: Relayed | None = field(default=None, compare=False, repr=False)

    @property
    def isolation_level(self) -> Isolation:
        """As the original: transactions over several databases are serializable unless told otherwise (O6)."""
        return self.isolation or ("serializable" if self.databases else "read_committed")

    def faults(self) -> Iterator[str]:
        """Faults as sentences."""
        if self.concurrency not in ("optimistic", "pessimistic"):
            yield f"concurrency of the outbox is {self.concurrency!r}: it must be optimistic or pessimistic."
        yield from self._spans()

    def faults_of(self, client: Client) -> Iterator[str]:
        """Likewise, for this endpoint."""
        if client.send_only:
            yield "An endpoint that only sends has no outbox: nothing is received."
        yield from self._names(client)

    def _spans(self) -> Iterator[str]:
        spans = {"keep": self.keep, "clean_every": self.clean_every, "relay_after": self.relay_after, "wait": self.wait}
        for name, span in spans.items():
            if span is not None and not timedelta() < span <= LONGEST:
                yield f"{name} of the outbox is {span}: it must be more than 0, and at most {LONGEST.days:,} days."

    def _names(self, client: Client) -> Iterator[str]:
        try:
            dialect = dialect_for(self.dsn) if self.dsn else client.dialect
            dialect.outbox_address(client.name, self.schema or dialect.default_schema, self.prefix)
        except (AddressUnreadable, ValueError) as error:
            yield f"The endpoint {client.name} can have no outbox: {error}."
            return
        yield from self._isolation_faults(dialect)
        if self.databases and dialect.two_phase_commit is None:
            yield f"databases of the outbox are given: an outbox on {dialect.name} cannot decide over others."
        for name, dsn in self.databases.items():
            yield from self._database_faults(name, dsn, self.dsn or client.dsn)

    def _isolation_faults(self, dialect: Dialect) -> Iterator[str]:
        if self.isolation_level not in (levels := dialect.isolations):
            yield f"isolation of the outbox is {self.isolation!r}: on {dialect.name} it is one of {', '.join(levels)}."

    def _database_faults(self, name: str, dsn: str, own: str) -> Iterator[str]:
        if not _DATABASE_NAME.fullmatch(name):
            yield f"databases of the outbox has {name!r}: a name is of at most 31 of a-z, 0-9 and _."
        if dsn == own:
            yield f"databases of the outbox has {name}, which is its own: handlers write in it by context.connection."
        try:
            dialect = dialect_for(dsn)
        except ValueError as error:
            yield f"databases of the outbox has {name}: {error}."
            return
        if dialect.two_phase_commit is None:
            yield f"databases of the outbox has {name}: {dialect.name} cannot take part in a two-phase commit."
        yield from self._isolation_faults(dialect)
