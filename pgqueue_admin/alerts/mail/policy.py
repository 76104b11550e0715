"""Which mails are due: the first of a warning, one when its count has doubled, and one when it is over."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import F, Prefetch

from pgqueue_admin.alerts.evaluation import AlertChanges
from pgqueue_admin.alerts.kinds import BY_NAME, KINDS
from pgqueue_admin.alerts.mail import composer
from pgqueue_admin.alerts.mail.rate_limit import RateLimit
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.models import Alert, AlertMail

SOONEST = timedelta(minutes=5)
_MAILED = [kind.name for kind in KINDS if kind.mailed]
_IN_ORDER = Prefetch("mails", AlertMail.objects.order_by("id"))


def write(look: AlertSnapshot, changes: AlertChanges) -> list[AlertMail]:
    """Rows that wait to be sent. In the transaction in which the cursor moves: neither is there without the other."""
    if not look.mail.takes_mail:
        return []
    written = [composer.write(look, alert, AlertMail.About.RESOLVED) for alert in over(changes)]
    ration = RateLimit(look.now)
    for alert, about in in_turn(due(look.now)):
        if not ration.takes(alert):
            continue  # told_count stays, so the warning is due again when the hour has room
        ration.take(alert)
        written.append(composer.write(look, alert, about, ration.ends_with(alert)))
        alert.told_count = alert.count
        alert.save(update_fields=["told_count"])
    return written


def due(now: datetime) -> Iterator[tuple[Alert, AlertMail.About]]:
    untold = Alert.objects.filter(resolved_at=None, kind__in=_MAILED, count__gt=F("told_count"))
    for alert in untold.prefetch_related(_IN_ORDER).order_by("severity", "-count", "id"):
        about = due_for(alert, now)
        if about:
            yield alert, about


def in_turn(found: Iterable[tuple[Alert, AlertMail.About]]) -> list[tuple[Alert, AlertMail.About]]:
    """The critical before the others, and of them one of each queue before the second of any."""
    before: Counter[tuple[str, str, str]] = Counter()
    places = []
    for alert, about in found:
        lane = (alert.severity, alert.kind, alert.queue)
        before[lane] += 1
        places.append((alert.severity, before[lane], alert, about))
    return [(alert, about) for _, _, alert, about in sorted(places, key=lambda place: place[:2])]


def due_for(alert: Alert, now: datetime) -> AlertMail.About | None:
    """Acknowledged: somebody knows, so nothing more is mailed but its end; one that has grown since is so no more."""
    mails = list(alert.mails.all())
    if alert.acknowledged_at or alert.count <= alert.told_count:
        return None
    if not mails:
        return AlertMail.About.OPENED if now - alert.opened_at >= BY_NAME[alert.kind].settle else None
    doubled = alert.count >= 2 * alert.told_count
    return AlertMail.About.GREW if doubled and now - mails[-1].created_at >= SOONEST else None


def over(changes: AlertChanges) -> Iterator[Alert]:
    """Who was told of the beginning is told of the end, where there is one."""
    return (alert for alert in changes.resolved if not BY_NAME[alert.kind].ends_silently and alert.mails.exists())
