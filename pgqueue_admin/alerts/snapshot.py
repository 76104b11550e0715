"""The input of all warning kinds, read once per evaluation."""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Q

from pgqueue_admin.alerts.dead_message_cursor import CursorReading, DeadGroup, NewDeaths, OldDeaths
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.mail import mail_settings
from pgqueue_admin.alerts.outboxes import OutboxesElsewhere, OutboxState
from pgqueue_admin.alerts.periodic_looks import LeaseLocks
from pgqueue_admin.alerts.table_faults import FaultyTable
from pgqueue_admin.archive import move_to_archive
from pgqueue_admin.archive.retention import Reader
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Alert, AlertMail, Endpoint, MinimumTtbr, Process, Queue, crashing_messages, staleness
from pgqueue_admin.models import readability as sight
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.models.processes import HEARTBEAT_LOST
from pgqueue_admin.models.queue_database import QueueDatabase, database_of, looked_at, queue_database
from pgqueue_admin.monitor.in_doubt import InDoubt

TRIED_FOR = timedelta(days=1)
CRASH_WINDOW = timedelta(minutes=5)


@dataclass
class AlertSnapshot:
    """The console's own tables at one moment, and the alerter's other knowledge."""

    now: datetime
    watching_since: datetime
    answering_since: datetime | None = None  # the console's database, without interruption; None: as long as we watch
    queues: list[Queue] = field(default_factory=list)  # with .latest, if sampled
    endpoints: list[Endpoint] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)  # running, or ended within the crash window
    ttbrs: dict[tuple[str, str], list[MinimumTtbr]] = field(default_factory=dict)  # by schema and table
    lying: list[DeadGroup] | None = None  # dead messages by queue and cause; None: the archive cannot be read
    deaths: list[NewDeaths] = field(default_factory=list)  # since the last pass
    piles: list[OldDeaths] = field(default_factory=list)  # old ones of these, by origin
    archive_error: str = ""
    silent: list[Reader] = field(default_factory=list)
    failed_mails: list[AlertMail] = field(default_factory=list)
    mail: mail_settings.MailSettings = field(default_factory=mail_settings.MailSettings)
    crashing: list[CrashingMessage] = field(
        default_factory=list
    )  # messages that crash their process, and are still in their queue
    exposed: list[Finding] | None = None  # None: not known
    outboxes: list[OutboxState] | None = None  # None: not known
    in_doubt: list[InDoubt] | None = None  # None: not known
    outboxes_elsewhere: OutboxesElsewhere | None = None  # None: not known
    crossings: list[Any] | None = None  # rows of ``unsettled`` (crossing_intent.sql); None: not known
    faulty_tables: list[FaultyTable] | None = None  # None: not known
    unsent_schedules: list[Any] | None = None  # rows of ``unsent`` (schedule.sql); None: not known
    lease_locks: list[LeaseLocks] | None = None  # None: not known
    environment: str = ""
    colour: str = "plum"

    def is_outbox_away(self, alias: str) -> bool:
        """Whether this database's outboxes are unknown now; always False for the queues' database (empty)."""
        return bool(alias) and (self.outboxes_elsewhere is None or alias in self.outboxes_elsewhere.unlooked)

    @staticmethod
    def open_subjects(kind: str) -> list[str]:
        """Subjects of open warnings."""
        return list(Alert.objects.filter(kind=kind, resolved_at=None).values_list("subject", flat=True))

    def address(self, queue: Queue | Endpoint) -> str:
        return queue_database().dialect.canonical(Address(queue.schema, queue.table))

    @cached_property
    def by_address(self) -> dict[str, Queue]:
        return {self.address(queue): queue for queue in self.queues}

    @cached_property
    def ours(self) -> dict[tuple[str, str], Endpoint]:
        """Our endpoints by their input queue."""
        return {(endpoint.schema, endpoint.table): endpoint for endpoint in self.endpoints if endpoint.ours}

    def is_paused(self, queue: Queue) -> bool:
        """Whether our endpoint that receives there is paused."""
        endpoint = self.ours.get((queue.schema, queue.table))
        return endpoint is not None and endpoint.paused

    def queue_of(self, alert: Alert) -> Queue | None:
        return self.by_address.get(alert.queue)

    def target_dead(self, address: str) -> int | None:
        """None: no target is set, or the queue is unknown."""
        queue = self.by_address.get(address)
        return queue.target_dead if queue else None

    @cached_property
    def dead_in(self) -> Counter[str]:
        """By queue: messages dead now, which include new deaths, and new deaths that are dead no longer.

        Counted once for all causes: senders choose exception types, and may create thousands.
        """
        groups = {(group.queue, group.cause): group for group in [*self.deaths, *(self.lying or [])]}
        found: Counter[str] = Counter()
        for group in groups.values():
            found[group.queue] += group.count
        return found

    def sampled(self) -> Iterator[Queue]:
        """Existing queues that were ever sampled."""
        return (queue for queue in self.queues if hasattr(queue, "latest") and not queue.gone_since)

    def read(self) -> Iterator[Queue]:
        """Queues whose newest sample succeeded: older figures are not judged."""
        return (queue for queue in self.sampled() if not queue.latest.error)

    def unreadable(self, address: str) -> bool:
        queue = self.by_address.get(address)
        return bool(queue and hasattr(queue, "latest") and queue.latest.error)

    @cached_property
    def sight(self) -> sight.UnreadQueues:
        return sight.of((queue.latest for queue in self.sampled()), self.now)

    @property
    def hears_of_sampler(self) -> bool:
        return any(self.hears_of(each) for each in self._samplers(""))

    def _samplers(self, alias: str) -> list[Process]:
        """Samplers of the first database, or of a further watched one."""
        role = "source-sampler" if alias else "sampler"
        return [each for each in self.processes if (each.role, each.endpoint) == (role, alias)]

    def silent_samplers(self) -> Iterator[tuple[str, datetime]]:
        """Further watched databases without a recent sample, and since when."""
        for of in looked_at():
            newest = self._newest(of)
            since = max(newest or self.watching_since, self.watching_since)
            if staleness.is_stale(since, self.now) and not any(map(self.hears_of, self._samplers(of.alias))):
                yield of.alias, since

    def of(self, endpoint: Endpoint) -> list[Process]:
        return [each for each in self.processes if each.role == "endpoint" and each.endpoint == endpoint.name]

    def hears_of(self, process: Process) -> bool:
        """Whether it runs and reported recently, by the rule of ``models.processes``."""
        return process.ended_at is None and self.now - process.heartbeat_at < HEARTBEAT_LOST

    @property
    def heard_for(self) -> timedelta:
        """For how long live processes could have reported."""
        return self.now - max(self.watching_since, self.answering_since or self.watching_since)

    @property
    def newest_sample(self) -> datetime | None:
        """Of the first database, which statements about all queues refer to."""
        return self._newest(queue_database())

    def _newest(self, of: QueueDatabase) -> datetime | None:
        """If there is no queue, or none can be read, the heartbeat of a sampler that gets answers counts instead."""
        sampled = [each for each in self.sampled() if database_of(Address(each.schema, each.table)).alias == of.alias]
        answered = (each.heartbeat_at for each in self._samplers(of.alias) if not each.last_error)
        read = [queue.latest.at for queue in sampled if not queue.latest.error]
        return max(read or answered, default=None) or max((each.latest.at for each in sampled), default=None)

    @property
    def misses_samples(self) -> bool:
        """Counted from our own start at the earliest, or each restart would report stale samples."""
        newest = self.newest_sample or self.watching_since
        return staleness.is_stale(max(newest, self.watching_since), self.now)

    @property
    def sees_queues(self) -> bool:
        return not staleness.is_stale(self.newest_sample, self.now)


def look(
    now: datetime,
    watching_since: datetime,
    reading: CursorReading,
    answering_since: datetime | None = None,
    **watched: Any,
) -> AlertSnapshot:
    """``watched``: latest results of the alerter's periodic looks, by the snapshot's field names."""
    return AlertSnapshot(
        now=now,
        watching_since=watching_since,
        answering_since=answering_since,
        **watched,
        queues=list(Queue.objects.select_related("latest")),
        endpoints=list(Endpoint.objects.all()),
        processes=list(Process.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now - CRASH_WINDOW))),
        ttbrs=smallest_ttbrs(),
        lying=reading.lying,
        deaths=reading.deaths,
        piles=reading.piles,
        archive_error=reading.error,
        silent=reading.silent,
        failed_mails=_failed_mails(now),
        crashing=still_crashing(),
        mail=mail_settings.configured(),
        environment=settings.PGQUEUE["ENVIRONMENT"],
        colour=settings.PGQUEUE["ENVIRONMENT_COLOUR"],
    )


def _failed_mails(now: datetime) -> list[AlertMail]:
    """Failed mails of a day, which are retried; else the newest of all, while the server has accepted none since."""
    of_a_day = list(AlertMail.objects.filter(state=AlertMail.State.FAILED, created_at__gt=now - TRIED_FOR))
    tried = AlertMail.objects.exclude(tried_at=None).order_by("-tried_at", "-pk")[:1]
    return of_a_day or [mail for mail in tried if mail.state == AlertMail.State.FAILED]


def smallest_ttbrs() -> dict[tuple[str, str], list[MinimumTtbr]]:
    found: dict[tuple[str, str], list[MinimumTtbr]] = defaultdict(list)
    for ttbr in MinimumTtbr.objects.select_related("queue"):
        found[ttbr.queue.schema, ttbr.queue.table].append(ttbr)
    return dict(found)


# Messages that crash their process: those that have left their queue are settled, the others cause a warning.
log = logging.getLogger("pgqueue.alerts")


def still_crashing() -> list[CrashingMessage]:
    """Return them; all of them while their queues cannot be read."""
    suspects = crashing_messages.suspects()
    try:
        return [each for each in suspects if _is_there(each)]
    except DatabaseError:
        return suspects


def _is_there(found: CrashingMessage) -> bool:
    with queue_database().read_session() as connection:
        if move_to_archive.is_there(connection, found.address, found.row_id):
            return True
    crashing_messages.settle(found.row_id)
    log.info("Message %s of %s has left its queue.", found.row_id, found.endpoint)
    return False
