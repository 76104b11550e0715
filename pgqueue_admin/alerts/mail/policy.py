"""Decides which mails are due: a warning's first, one when its count has doubled, and one when it is over."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cached_property

from django.db.models import F, Prefetch

from pgqueue_admin.alerts.evaluation import AlertChanges
from pgqueue_admin.alerts.kinds import BY_NAME, KINDS
from pgqueue_admin.alerts.mail import composer
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Alert, AlertMail, Queue
from pgqueue_admin.models.queue_database import queue_database

SOONEST = timedelta(minutes=5)
_MAILED = [kind.name for kind in KINDS if kind.mailed]
_IN_ORDER = Prefetch("mails", AlertMail.objects.order_by("id"))


def write(look: AlertSnapshot, changes: AlertChanges) -> list[AlertMail]:
    """Create waiting rows in the transaction that moves the cursor: both commit or neither."""
    if not look.mail.takes_mail:
        return []
    written = [composer.write(look, alert, AlertMail.About.RESOLVED) for alert in over(changes)]
    ration = RateLimit(look.now)
    for alert, about in in_turn(due(look.now)):
        if not ration.takes(alert):
            continue  # notified_count stays, so the warning is due again when the hourly limit allows
        ration.take(alert)
        written.append(composer.write(look, alert, about, ration.ends_with(alert)))
        alert.notified_count = alert.count
        alert.save(update_fields=["notified_count"])
    return written


def due(now: datetime) -> Iterator[tuple[Alert, AlertMail.About]]:
    untold = Alert.objects.filter(resolved_at=None, kind__in=_MAILED, count__gt=F("notified_count"))
    for alert in untold.prefetch_related(_IN_ORDER).order_by("severity", "-count", "id"):
        about = due_for(alert, now)
        if about:
            yield alert, about


def in_turn(found: Iterable[tuple[Alert, AlertMail.About]]) -> list[tuple[Alert, AlertMail.About]]:
    """Order by severity; within one, the first of each queue before the second of any."""
    before: Counter[tuple[str, str, str]] = Counter()
    places = []
    for alert, about in found:
        lane = (alert.severity, alert.kind, alert.queue)
        before[lane] += 1
        places.append((alert.severity, before[lane], alert, about))
    return [(alert, about) for _, _, alert, about in sorted(places, key=lambda place: place[:2])]


def due_for(alert: Alert, now: datetime) -> AlertMail.About | None:
    """Return which mail is due. An acknowledged warning mails only its end; growth ends an acknowledgement."""
    mails = list(alert.mails.all())
    if alert.acknowledged_at or alert.count <= alert.notified_count:
        return None
    if not mails:
        settle = BY_NAME[alert.kind].settle  # without one no clock is compared: another's may be ahead
        return AlertMail.About.OPENED if not settle or now - alert.opened_at >= settle else None
    doubled = alert.count >= 2 * alert.notified_count
    return AlertMail.About.GREW if doubled and now - mails[-1].created_at >= SOONEST else None


def over(changes: AlertChanges) -> Iterator[Alert]:
    """Return resolved warnings whose opening was mailed, unless their kind ends silently."""
    return (alert for alert in changes.resolved if not BY_NAME[alert.kind].ends_silently and alert.mails.exists())


# The hourly limit of mails: in all, and about one queue, so that no flood hides another queue's outage.
CAP, WINDOW = 20, timedelta(hours=1)
SHARE = 5  # of them per queue and kind of warning
_COUNTED = [AlertMail.About.OPENED, AlertMail.About.GREW]  # an end is always mailed if the opening was
Share = tuple[str, str]


class RateLimit:
    """Mails of the last hour, and how many more are allowed."""

    def __init__(self, now: datetime):
        recent = AlertMail.objects.filter(about__in=_COUNTED, created_at__gt=now - WINDOW).order_by("created_at")
        self._written: list[tuple[Share, datetime]] = [
            ((kind, queue), at) for kind, queue, at in recent.values_list("alert__kind", "alert__queue", "created_at")
        ]
        self._now = now

    def takes(self, alert: Alert) -> bool:
        """Whether a mail is allowed. An existing queue's first critical one of a kind in the hour is always allowed."""
        if self.of(alert) >= SHARE:
            return False
        return len(self._written) < CAP or (self.of(alert) == 0 and self._must_be_told(alert))

    def take(self, alert: Alert) -> None:
        self._written.append((share(alert), self._now))

    def of(self, alert: Alert) -> int:
        return sum(written == share(alert) for written, _ in self._written)

    def ends_with(self, alert: Alert) -> str:
        """Return the sentence for a mail that is the last for now, in all or about its queue."""
        if len(self._written) >= CAP:
            return f"This is the last mail for now: {CAP} an hour are sent at most."
        if self.of(alert) >= SHARE:
            return f"This is the last mail about this queue for now: {SHARE} an hour are sent at most."
        return ""

    def again(self, alert: Alert) -> datetime | None:
        """When a mail held back now may be written; None: it is allowed."""
        if self.takes(alert):
            return None
        times = [at for written, at in self._written if written == share(alert)]
        full = times[-SHARE:] if len(times) >= SHARE else [at for _, at in self._written][-CAP:]
        return full[0] + WINDOW

    def _must_be_told(self, alert: Alert) -> bool:
        """Whether a mail is exempt. Anybody may write a queue name into a message, so unknown queues are not."""
        return alert.severity == Alert.Severity.CRITICAL and alert.queue in self._there

    @cached_property
    def _there(self) -> set[str]:
        names = Queue.objects.filter(gone_since=None).values_list("schema", "table")
        return {queue_database().dialect.canonical(Address(*name)) for name in names}


def share(alert: Alert) -> Share:
    return alert.kind, alert.queue
