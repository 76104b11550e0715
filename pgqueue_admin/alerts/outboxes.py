"""Judges outboxes, beside the queues and elsewhere, for the page and for the warning."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pgqueue_admin.alerts.periodic_looks import PeriodicLook
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import durations
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.models import (
    Endpoint,
    ForeignOutbox,
    database_clock,
    outbox_databases,
    outbox_first_seen,
    outbox_owners,
)
from pgqueue_admin.models.outbox_databases import OutboxDatabase
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import in_doubt, outboxes
from pgqueue_admin.monitor.in_doubt import InDoubt, Owner
from pgqueue_admin.monitor.outboxes import COUNTED_TO, OutboxFigures, OutboxTable
from pgqueue_admin.services.outbox import first_seen
from pgqueue_admin.services.outbox.switches import here
from pgqueue_admin.workers.processes.endpoint_settings import isolation_said

EVERY = 30.0  # seconds between two looks of the alerter
GRACE = timedelta(minutes=1)  # by default
ORIGINAL_KEEPS = timedelta(days=7)  # outbox sheet 8
_BEHIND = timedelta(hours=1)  # a smaller delay of clean-up is not reported


@dataclass(frozen=True, slots=True)
class OutboxState:
    """``endpoint``: our endpoint that writes there; None: a foreign table. ``decided``: its switches.
    ``seen_since``: when the oldest waiting record was first seen, if the table stores no times; by the clock of
    ``now``.
    """

    figures: OutboxFigures
    endpoint: Endpoint | None
    now: datetime
    decided: ForeignOutbox | None = None
    seen_since: datetime | None = None

    @property
    def address(self) -> Address:
        return self.figures.table.address

    @property
    def alias(self) -> str:
        """The alias of a database that is only watched; empty: beside the queues."""
        return database_alias.alias_of(self.address)

    @property
    def name(self) -> str:
        """The endpoint's name, or one derived from the table's."""
        return self.endpoint.name if self.endpoint else self.address.table.removesuffix("OutboxData").rstrip("_")

    @property
    def isolation(self) -> str:
        """The isolation of our endpoint; empty for foreign programs: unknown."""
        return isolation_said(self.endpoint) if self.endpoint else ""

    @property
    def pending(self) -> str:
        count = self.figures.pending
        return f"{format_int(COUNTED_TO)}+" if count > COUNTED_TO else format_int(count)

    @property
    def grace(self) -> timedelta:
        seconds = self.endpoint.outbox_relay_seconds if self.endpoint else None
        relay = self.decided.relay_after if self.decided and not self.endpoint else None
        return relay or (timedelta(seconds=seconds) if seconds else GRACE)

    @property
    def is_relayed(self) -> bool:
        """Whether this console relays another program's outbox."""
        return self.endpoint is None and self.decided is not None and self.decided.relay_seconds is not None

    @property
    def age(self) -> timedelta | None:
        """The age of the oldest waiting record, at least; None: none waits, or unknown. Not negative if a clock is
        ahead.
        """
        since = self.figures.oldest_pending or self.seen_since
        return max(timedelta(), self.now - since) if since else None

    @property
    def is_undated(self) -> bool:
        """Whether records wait and the table does not store since when."""
        return bool(self.figures.pending) and not self.figures.oldest_pending and not self.figures.unread

    @property
    def is_stuck(self) -> bool:
        """Whether a record waits longer than its relay would allow. One being sent has a small age, or none known."""
        return bool(self.figures.pending) and self.age is not None and self.age > 2 * self.grace

    @property
    def keep(self) -> timedelta | None:
        """How long dispatched records are kept; None: nothing here deletes them, and their program's time is
        unknown.
        """
        if self.endpoint:
            is_cleaned = self.endpoint.outbox_clean_seconds is not None
            return timedelta(seconds=self.endpoint.outbox_keep_seconds) if is_cleaned else None
        return self.decided.keep if self.decided else None

    @property
    def behind(self) -> timedelta | None:
        """How late clean-up is; None: not late, or unknown."""
        return self._late(self.keep)

    @property
    def beyond_default(self) -> timedelta | None:
        """How late clean-up would be if a foreign program kept records for the original's default."""
        return self._late(ORIGINAL_KEEPS) if self.keep is None and not self.endpoint else None

    def _late(self, keep: timedelta | None) -> timedelta | None:
        if keep is None or not self.figures.oldest_kept:
            return None
        late = self.now - self.figures.oldest_kept - keep
        return late if late > _BEHIND else None

    @property
    def beyond_default_said(self) -> str:
        return durations.duration(self.beyond_default.total_seconds()) if self.beyond_default else ""

    @property
    def keep_said(self) -> str:
        return durations.plain(self.keep.total_seconds()) if self.keep else ""

    @property
    def behind_said(self) -> str:
        return durations.duration(self.behind.total_seconds()) if self.behind else ""

    @property
    def age_said(self) -> str:
        return durations.duration(self.age.total_seconds()) if self.age else ""


def load(connection: Connection) -> list[OutboxState]:
    """Return all watched outboxes beside the queues. Raises DatabaseError."""
    of = queue_database()
    found = outboxes.find(connection, list(of.schemas))
    judge = _Judge(connection)
    return [judge.state(each) for each in found]


@dataclass(frozen=True, slots=True)
class OutboxesElsewhere:
    """State of databases other than the queues'. ``unlooked``: why a database is unknown, by alias."""

    states: list[OutboxState] = field(default_factory=list)
    in_doubt: list[InDoubt] = field(default_factory=list)
    unlooked: dict[str, str] = field(default_factory=dict)


def load_elsewhere(*, noting: bool = False) -> OutboxesElsewhere:
    """``noting``: store first-seen times if a database keeps none."""
    found = OutboxesElsewhere()
    for each in outbox_databases.elsewhere():
        try:
            with each.read_session() as connection:
                _look_into(each, connection, found, noting)
        except DatabaseError as error:
            found.unlooked[each.alias] = str(error) if each.of else each.blocking_reason
    return found


def _look_into(each: OutboxDatabase, connection: Connection, found: OutboxesElsewhere, noting: bool) -> None:
    judge = _Judge(connection)
    states = [judge.state(table) for table in outboxes.find(connection, each.schemas)]
    doubtful = in_doubt.find(connection, outboxes.now(connection), each.alias)
    if noting:
        states = [_followed(connection, each.key, state) if state.is_undated else state for state in states]
        _forget_others(each, states)
    found.states.extend(states)
    found.in_doubt.extend(_seen_first(each, doubtful, noting))


def with_owners(found: list[InDoubt], states: list[OutboxState]) -> list[InDoubt]:
    """Add the outbox that decides on each and its decision, if its table can be read."""
    known: dict[str, Owner] = {}
    for alias in {state.alias for state in states} if found else ():
        tables = [state.address for state in states if state.alias == alias]
        elsewhere = outbox_databases.of_table(tables[0])
        try:
            with elsewhere.read_session() if elsewhere else queue_database().read_session() as connection:
                known |= in_doubt.owners(connection, tables, found)
        except DatabaseError:
            continue  # its page reports it
    return [replace(each, owner=known.get(each.prepared.coordinator)) for each in found]


_IN_DOUBT = Address("", "in doubt")  # first-seen times are stored under this name


def _seen_first(of: OutboxDatabase, found: list[InDoubt], noting: bool) -> list[InDoubt]:
    """Add ages that a server does not report: at least the time since the first look."""
    names = [each.name for each in found if each.age is None]
    if noting:
        known = outbox_first_seen.since(of.key, _IN_DOUBT)
        outbox_first_seen.forget(of.key, _IN_DOUBT, known.keys() - set(names))
        since = outbox_first_seen.note(of.key, _IN_DOUBT, names)
    else:
        since = outbox_first_seen.since(of.key, _IN_DOUBT, names) if names else {}
    now = database_clock.now() if since else None
    return [
        replace(each, age=now - since[each.name], is_seen=True) if now and each.name in since else each
        for each in found
    ]


def _forget_others(of: OutboxDatabase, states: list[OutboxState]) -> None:
    followed = {
        database_alias.native(of.alias, each.address) for each in states if each.is_undated or each.figures.unread
    }
    for table in outbox_first_seen.tables(of.key) - followed - {_IN_DOUBT}:
        outbox_first_seen.forget_all(of.key, table)


def one(connection: Connection, address: Address) -> OutboxState | None:
    """Return one outbox; None: missing, or not watched. Raises DatabaseError."""
    table = table_of(connection, address)
    return _Judge(connection).state(table) if table else None


class _Judge:
    """Reads what the console's own tables hold on outboxes."""

    def __init__(self, connection: Connection):
        self._connection, self._now, self._database = connection, outboxes.now(connection), ""
        self._owners = outbox_owners.by_table()
        self._decided = {Address(row.schema, row.table): row for row in ForeignOutbox.objects.all()}

    def state(self, table: OutboxTable) -> OutboxState:
        of, figures = table.address, outboxes.measure(self._connection, table)
        state = OutboxState(figures, self._owners.get(of), self._now, self._decided.get(of))
        return _seen(state, self._seen_since(of)) if state.is_undated else state

    def _seen_since(self, table: Address) -> datetime | None:
        self._database = self._database or first_seen.database_of(self._connection, table)
        return first_seen.seen_since(self._connection, self._database, table)


def _seen(state: OutboxState, since: datetime | None) -> OutboxState:
    """``since``: by the console's clock."""
    return replace(state, seen_since=state.now - (database_clock.now() - since) if since else None)


def table_of(connection: Connection, address: Address) -> OutboxTable | None:
    elsewhere = outbox_databases.of_table(address)
    schemas = elsewhere.schemas if elsewhere else list(queue_database().schemas)
    found = outboxes.find(connection, schemas)
    return next((each for each in found if each.address == address and not each.why_unread), None)


class OutboxWatch(PeriodicLook[list[OutboxState]]):
    """The state of each outbox, for the alerter.

    For tables without times it notes when it first saw each record. A record that stays is stuck, whatever else passes.
    """

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[OutboxState]:
        with queue_database().read_session() as connection:
            states, database = load(connection), here(connection)
            followed = [state.address for state in states if state.is_undated or state.figures.unread]
            first_seen.forget_what_is_not_followed(database, followed)
            return [_followed(connection, database, state) if state.is_undated else state for state in states]


def _followed(connection: Connection, database: str, state: OutboxState) -> OutboxState:
    since = first_seen.follow(connection, database, state.address)
    return _seen(state, min(since.values(), default=None))


class ElsewhereWatch(PeriodicLook[OutboxesElsewhere]):
    """Outboxes and in-doubt transactions of databases other than the queues', for the alerter."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> OutboxesElsewhere:
        return load_elsewhere(noting=True)


class InDoubtWatch(PeriodicLook[list[InDoubt]]):
    """Prepared transactions on the queues' server, oldest first, for the alerter."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[InDoubt]:
        with queue_database().read_session() as connection:
            return in_doubt.find(connection, outboxes.now(connection))
