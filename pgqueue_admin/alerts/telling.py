"""Which mails are due: the first of a warning, one when its count has doubled, and one when it is over."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import F, Prefetch

from pgqueue_admin.alerts import letter
from pgqueue_admin.alerts.evaluate import Changes
from pgqueue_admin.alerts.kinds import KINDS
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.records.models import Alert, AlertMail

SOONEST = timedelta(minutes=5)
CAP, CAP_WINDOW = 20, timedelta(hours=1)
_MAILED = [kind.name for kind in KINDS if kind.mailed]
_IN_ORDER = Prefetch("mails", AlertMail.objects.order_by("id"))


def write(look: Look, changes: Changes) -> list[AlertMail]:
    """Rows that wait to be sent. In the transaction in which the cursor moves: neither is there without the other."""
    if not look.mail.takes_mail:
        return []
    written = [letter.write(look, alert, AlertMail.About.RESOLVED) for alert in over(changes)]
    room = free(look.now)
    for alert, about in due(look.now):
        if room <= 0:
            break  # told_count stays, so the warning is due again when the hour has room
        room -= 1
        written.append(letter.write(look, alert, about, last_in_hour=room == 0))
        alert.told_count = alert.count
        alert.save(update_fields=["told_count"])
    return written


def due(now: datetime) -> Iterator[tuple[Alert, AlertMail.About]]:
    untold = Alert.objects.filter(resolved_at=None, kind__in=_MAILED, count__gt=F("told_count"))
    for alert in untold.prefetch_related(_IN_ORDER).order_by("id"):
        about = due_for(alert, now)
        if about:
            yield alert, about


def due_for(alert: Alert, now: datetime) -> AlertMail.About | None:
    """Acknowledged: somebody knows, so nothing more is mailed but its end."""
    mails = list(alert.mails.all())
    if alert.acknowledged_at or alert.count <= alert.told_count:
        return None
    if not mails:
        return AlertMail.About.OPENED
    doubled = alert.count >= 2 * alert.told_count
    return AlertMail.About.GREW if doubled and now - mails[-1].created_at >= SOONEST else None


def over(changes: Changes) -> Iterator[Alert]:
    """Who was told of the beginning is told of the end."""
    return (alert for alert in changes.resolved if alert.mails.exists())


def free(now: datetime) -> int:
    """How many more mails may be written within this hour."""
    counted = [AlertMail.About.OPENED, AlertMail.About.GREW]
    return CAP - AlertMail.objects.filter(about__in=counted, created_at__gt=now - CAP_WINDOW).count()


def room_again(now: datetime) -> datetime | None:
    """When the next mail may be written, if warnings are held back now."""
    counted = [AlertMail.About.OPENED, AlertMail.About.GREW]
    recent = AlertMail.objects.filter(about__in=counted, created_at__gt=now - CAP_WINDOW).order_by("-created_at")
    times = list(recent.values_list("created_at", flat=True)[:CAP])
    return times[-1] + CAP_WINDOW if len(times) == CAP else None
