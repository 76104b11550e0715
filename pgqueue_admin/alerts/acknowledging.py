"""Acknowledging a warning: somebody knows. One service for page and admin, guarded and audited."""

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import F

from pgqueue_admin.alerts import places
from pgqueue_admin.records import clock, notify
from pgqueue_admin.records.models import Alert, AuditEntry
from pgqueue_admin.wording.times import ago


def acknowledge(number: int, person: User | AnonymousUser, origin: str) -> str:
    """ "" when done, else the sentence that says what did not happen and why."""
    now, who = clock.now(), person.get_username()
    unknown_to_all = Alert.objects.filter(pk=number, resolved_at=None, acknowledged_at=None)
    with transaction.atomic():
        if not unknown_to_all.update(acknowledged_by=who, acknowledged_at=now, acknowledged_count=F("count")):
            return _why_not(number)
        _audit(number, who, "acknowledge", origin)
    return ""


def withdraw(number: int, person: User | AnonymousUser, origin: str) -> str:
    """Put it back among the open ones."""
    acknowledged = Alert.objects.filter(pk=number, resolved_at=None).exclude(acknowledged_at=None)
    with transaction.atomic():
        if not acknowledged.update(acknowledged_by="", acknowledged_at=None):
            return "Nothing was changed. This warning is not acknowledged, or is over."
        _audit(number, person.get_username(), "withdraw", origin)
    return ""


def opens_again_at(alert: Alert) -> int | None:
    """Doubled, it is no longer what somebody knew of. None: it counts nothing."""
    return 2 * alert.acknowledged_count or None


def lapse(alert: Alert) -> None:
    """End the acknowledgement of a warning that has grown, unless somebody has taken it back."""
    still = Alert.objects.filter(pk=alert.pk, acknowledged_at=alert.acknowledged_at)
    alert.acknowledged_by, alert.acknowledged_at = "", None
    if still.update(acknowledged_by="", acknowledged_at=None):
        _audit(alert.pk, "the console", "withdraw", "alerter")


def _why_not(number: int) -> str:
    alert = Alert.objects.filter(pk=number).first()
    if alert is None:
        return "Nothing was acknowledged. There is no such warning."
    if alert.resolved_at:
        return f"Nothing was acknowledged. This warning was over {ago(alert.resolved_at, clock.now())}."
    when = ago(alert.acknowledged_at or clock.now(), clock.now())
    return f"Nothing was changed. {alert.acknowledged_by} acknowledged this warning {when}."


def _audit(number: int, who: str, verb: str, origin: str) -> None:
    alert = Alert.objects.get(pk=number)
    subject = f"{number}, {places.where(alert)}: {alert.sentence}"[:400]
    AuditEntry.objects.create(who=who, verb=verb, noun="alert", subject=subject, origin=origin)
    notify.announce(notify.ALERT)
