"""Acknowledges warnings until a time. One service for page and admin, guarded and audited."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.db.models import F

from pgqueue_admin.alerts import display_names
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting.times import ago
from pgqueue_admin.models import Alert, AuditEntry, database_clock, notify
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.permissions import Refusal

Person = User | AnonymousUser
LASTS = timedelta(days=7)  # by default: no acknowledgement is permanent
LONGEST = timedelta(days=90)
LONGEST_REASON = 200
NONE: dict[str, object] = {
    "acknowledged_by": "", "acknowledged_at": None, "acknowledged_until": None, "acknowledged_reason": "",
}  # fmt: skip


class Acknowledged(NamedTuple):
    """The number acknowledged, and a sentence for each that was not."""

    done: int
    refused: list[str]


def acknowledge(
    number: int, person: Person, origin: str, *, reason: str = "", lasts: timedelta = LASTS, now: datetime | None = None
) -> str:
    """Return "" when done, else a sentence that says what did not happen and why. It lasts for ``lasts`` at most."""
    now, who = now or database_clock.now(), person.get_username()
    if not timedelta() < lasts <= LONGEST:
        return f"Nothing was acknowledged. An acknowledgement lasts up to {LONGEST.days} days."
    if beyond := _beyond(number):
        return f"Nothing was acknowledged. It {beyond}."
    unknown_to_all = Alert.objects.filter(pk=number, resolved_at=None, acknowledged_at=None)
    given = {"acknowledged_until": now + lasts, "acknowledged_reason": reason[:LONGEST_REASON]}
    with transaction.atomic():
        if not unknown_to_all.update(acknowledged_by=who, acknowledged_at=now, acknowledged_count=F("count"), **given):
            return _blocking_reason(number)
        _audit(number, who, "acknowledge", origin, reason)
    return ""


def acknowledge_all(
    numbers: Sequence[int], person: Person, origin: str, *, reason: str, lasts: timedelta
) -> Acknowledged:
    """Acknowledge each by itself: one that is over does not prevent the others."""
    now = database_clock.now()
    said = [acknowledge(number, person, origin, reason=reason, lasts=lasts, now=now) for number in numbers]
    return Acknowledged(said.count(""), [each for each in said if each])


def withdraw(number: int, person: Person, origin: str) -> str:
    """Reopen an acknowledged warning. Return "" or why not."""
    if beyond := _beyond(number):
        return f"Nothing was changed. It {beyond}."
    acknowledged = Alert.objects.filter(pk=number, resolved_at=None).exclude(acknowledged_at=None)
    with transaction.atomic():
        if not acknowledged.update(**NONE):
            return "Nothing was changed. This warning is not acknowledged, or is over."
        _audit(number, person.get_username(), "withdraw", origin)
    return ""


def opens_again_at(alert: Alert) -> int | None:
    """Return the count that ends the acknowledgement, twice the acknowledged one. None: the warning counts nothing."""
    return 2 * alert.acknowledged_count or None


def is_over(alert: Alert, now: datetime) -> bool:
    """Whether the acknowledgement has ended, by time or by count."""
    most = opens_again_at(alert)
    grown = most is not None and alert.count >= most
    late = alert.acknowledged_until is not None and alert.acknowledged_until <= now
    return alert.acknowledged_at is not None and (grown or late)


def lapse(alert: Alert) -> None:
    """End a warning's acknowledgement, unless somebody withdrew it."""
    still = Alert.objects.filter(pk=alert.pk, acknowledged_at=alert.acknowledged_at)
    for name, value in NONE.items():
        setattr(alert, name, value)
    if still.update(**NONE):
        _audit(alert.pk, "the console", "withdraw", "alerter")


def _beyond(number: int) -> Refusal | None:
    """Why the person may not act on the warning's queue."""
    alert = Alert.objects.filter(pk=number).first() if visible_queues.current() else None
    return queue_access.refusal_by_name(alert.queue) if alert else None


def _blocking_reason(number: int) -> str:
    alert = Alert.objects.filter(pk=number).first()
    if alert is None:
        return "Nothing was acknowledged. There is no such warning."
    if alert.resolved_at:
        return f"Nothing was acknowledged. This warning ended {ago(alert.resolved_at, database_clock.now())}."
    when = ago(alert.acknowledged_at or database_clock.now(), database_clock.now())
    return f"Nothing was changed. {alert.acknowledged_by} acknowledged this warning {when}."


def _audit(number: int, who: str, verb: str, origin: str, reason: str = "") -> None:
    alert = Alert.objects.get(pk=number)
    subject = f"{number}, {display_names.where(alert)}: {alert.sentence}"[:400]
    AuditEntry.objects.create(who=who, verb=verb, noun="alert", subject=subject, origin=origin, reason=reason)
    notify.announce(notify.ALERT)
