"""The outboxes of the queues' database and how each stands: judged here for the page, and for the warning."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pgqueue_admin.alerts.periodic_look import PeriodicLook
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting import durations
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.models import Endpoint, ForeignOutbox, database_clock, outbox_owners
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import in_doubt, outboxes
from pgqueue_admin.monitor.in_doubt import InDoubt
from pgqueue_admin.monitor.outboxes import COUNTED_TO, OutboxFigures, OutboxTable
from pgqueue_admin.services import followed_outboxes
from pgqueue_admin.services.foreign_outboxes import here
from pgqueue_admin.workers.processes.endpoint_settings import isolation_said

EVERY = 30.0  # seconds between two looks of the alerter
GRACE = timedelta(minutes=1)  # of an outbox whose endpoint does not say another
_BEHIND = timedelta(hours=1)  # clean-up may be so late without a word


@dataclass(frozen=True, slots=True)
class OutboxState:
    """``endpoint``: the one of ours that writes there; None: a foreign table. ``decided``: what is on for it.

    ``seen_since``: when the oldest of what waits was seen first, where the table does not say since when it does; by
    the clock of ``now``.
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
    def name(self) -> str:
        """The endpoint's, or what the table is called by."""
        return self.endpoint.name if self.endpoint else self.address.table.removesuffix("OutboxData").rstrip("_")

    @property
    def isolation(self) -> str:
        """Of an endpoint of ours; of a program of others nobody knows."""
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
        """By this console, though it is another program's."""
        return self.endpoint is None and self.decided is not None and self.decided.relay_seconds is not None

    @property
    def age(self) -> timedelta | None:
        """How long the oldest waits, at least; None where nothing does, or nobody knows."""
        since = self.figures.oldest_pending or self.seen_since
        return self.now - since if since else None

    @property
    def is_undated(self) -> bool:
        """Something waits, and the table does not say since when."""
        return bool(self.figures.pending) and not self.figures.oldest_pending and not self.figures.unread

    @property
    def is_stuck(self) -> bool:
        """What waits longer than its relay would let it; of what is just being sent the age is small, or unknown."""
        return bool(self.figures.pending) and self.age is not None and self.age > 2 * self.grace

    @property
    def behind(self) -> timedelta | None:
        """How late clean-up is; None where that is not known, or it is not late."""
        if not self.endpoint or not self.figures.oldest_kept or self.endpoint.outbox_clean_seconds is None:
            return None
        late = self.now - self.figures.oldest_kept - timedelta(seconds=self.endpoint.outbox_keep_seconds)
        return late if late > _BEHIND else None

    @property
    def behind_said(self) -> str:
        return durations.duration(self.behind.total_seconds()) if self.behind else ""

    @property
    def age_said(self) -> str:
        return durations.duration(self.age.total_seconds()) if self.age else ""


def load(connection: Connection) -> list[OutboxState]:
    """All that may be looked at. Raises DatabaseError."""
    of = queue_database()
    found = outboxes.find(connection, list(of.schemas))
    judge = _Judge(connection)
    return [judge.state(each) for each in found]


def one(connection: Connection, address: Address) -> OutboxState | None:
    """None: there is no such table, or it may not be looked at. Raises DatabaseError."""
    table = table_of(connection, address)
    return _Judge(connection).state(table) if table else None


class _Judge:
    """What the console's own tables know of outboxes."""

    def __init__(self, connection: Connection):
        self._connection, self._now, self._database = connection, outboxes.now(connection), ""
        self._owners = outbox_owners.by_table()
        self._decided = {Address(row.schema, row.table): row for row in ForeignOutbox.objects.all()}

    def state(self, table: OutboxTable) -> OutboxState:
        of, figures = table.address, outboxes.measure(self._connection, table)
        state = OutboxState(figures, self._owners.get(of), self._now, self._decided.get(of))
        return _seen(state, self._seen_since(of)) if state.is_undated else state

    def _seen_since(self, table: Address) -> datetime | None:
        self._database = self._database or here(self._connection)
        return followed_outboxes.seen_since(self._connection, self._database, table)


def _seen(state: OutboxState, since: datetime | None) -> OutboxState:
    """``since``: by the console's clock."""
    return replace(state, seen_since=state.now - (database_clock.now() - since) if since else None)


def table_of(connection: Connection, address: Address) -> OutboxTable | None:
    found = outboxes.find(connection, list(queue_database().schemas))
    return next((each for each in found if each.address == address and not each.why_unread), None)


class OutboxWatch(PeriodicLook[list[OutboxState]]):
    """For the alerter: how each stands.

    Of a table without times it notes when it saw a record first. A record that stays is stuck, whatever passes by.
    """

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[OutboxState]:
        with queue_database().reading() as connection:
            states, database = load(connection), here(connection)
            followed = [state.address for state in states if state.is_undated or state.figures.unread]
            followed_outboxes.forget_what_is_not_followed(database, followed)
            return [_followed(connection, database, state) if state.is_undated else state for state in states]


def _followed(connection: Connection, database: str, state: OutboxState) -> OutboxState:
    since = followed_outboxes.follow(connection, database, state.address)
    return _seen(state, min(since.values(), default=None))


class InDoubtWatch(PeriodicLook[list[InDoubt]]):
    """For the alerter: transactions that are prepared on the queues' server, the oldest first."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[InDoubt]:
        with queue_database().reading() as connection:
            return in_doubt.find(connection, outboxes.now(connection))
