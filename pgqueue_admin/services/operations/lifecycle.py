"""Start and cancel: each happens once, and whoever comes second is told who was first."""

import logging
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db import transaction

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, database_clock, notify
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, at
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.operations.runner import UNFINISHED, in_hand, recount
from pgqueue_admin.services.operations.selection import LAPSES_AFTER, NOT_DROPPED, forget, lapse
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)
State = Operation.State


def start(pk: int, person: Any, reason: str = "", targets: Collection[str] = ()) -> Operation:
    """Let it run; workers of housekeeping pick it up within a second. Raises Refused.

    ``targets``: addresses that the person named, of queues that are no input queues: a retry writes into these, too.
    """
    operation = Operation.objects.get(pk=pk)
    if refusal := refusal_for(person, operation.kind):
        raise OperationNotAllowed(f"Nothing was {kind_of(operation.kind).past}: {refusal}.")
    lapse()
    changes = {"state": State.WAITING, "started_by": name_of(person), "started_at": database_clock.now()}
    changes["targets"] = sorted(map(postgresql().canonical, parsed(targets)))
    with transaction.atomic():
        if not Operation.objects.filter(pk=pk, state=State.FROZEN).update(**changes | _because(reason)):
            raise _too_late(Operation.objects.get(pk=pk))
        operation.refresh_from_db()
        _audit(operation, person)
        notify.announce(notify.OPERATION, str(pk))
    return operation


def cancel(pk: int, person: Any) -> Operation:
    """What is done stays done, what is not stays as it is; takes effect within one chunk. Raises Refused."""
    operation = Operation.objects.get(pk=pk)
    if refusal := refusal_for(person, operation.kind):
        raise OperationNotAllowed(f"Nothing was cancelled: {refusal}.")
    with transaction.atomic():
        changes = {"state": State.CANCELLED, "cancelled_by": name_of(person), "ended_at": database_clock.now()}
        asked = Operation.objects.filter(pk=pk)
        never_started = asked.filter(state=State.FROZEN).update(**changes, last_error=NOT_DROPPED)
        if not (never_started or asked.filter(state__in=UNFINISHED).update(**changes, last_error="")):
            raise _too_late(Operation.objects.get(pk=pk), "cancelled")
        about = {"who": name_of(person), "verb": "cancel", "noun": "operation", "subject": str(pk)}
        AuditEntry.objects.create(**about, origin=operation.origin, operation_id=pk)
        notify.announce(notify.OPERATION, str(pk))
    if never_started:
        forget(pk)
    operation.refresh_from_db()
    if operation.started_at:
        _count(operation)
    return operation


def _count(operation: Operation) -> None:
    """What a worker that was killed had done may not be in the row yet; one at work counts when its chunk ends."""
    try:
        if not in_hand(operation):
            recount(operation.pk)
            operation.refresh_from_db()
    except DatabaseError as error:  # counted by ``settle``
        log.warning("Operation %s is cancelled, and not counted yet: %s", operation.pk, error)


def lapses_in(operation: Operation) -> timedelta:
    return max(timedelta(), operation.created_at + LAPSES_AFTER - database_clock.now())


def _because(reason: str) -> dict[str, str]:
    return {"reason": reason} if reason else {}


def _audit(operation: Operation, person: Any) -> None:
    where = list(operation.queues)
    AuditEntry.objects.create(
        who=name_of(person),
        verb=operation.kind,
        noun="message",
        subject=where[0][:400] if len(where) == 1 else f"{len(where)} queues",
        count=operation.count,
        reason=operation.reason,
        after={"targets": operation.targets} if operation.targets else None,
        origin=operation.origin,
        operation_id=operation.pk,
    )


def _too_late(now: Operation, past: str = "") -> AlreadyDecided:
    past = past or kind_of(now.kind).past
    name = f"operation {now.pk}"
    if now.state == State.LAPSED:
        return AlreadyDecided(
            f"Nothing was {past}: {name} was not started within 30 minutes. Choose the messages again."
        )
    if now.state == State.CANCELLED:
        why, who, when = "cancelled", now.cancelled_by, now.ended_at
    elif past == "cancelled":
        return AlreadyDecided(f"Nothing was cancelled: {name} ended {at(now.ended_at)}.", now.started_by, now.ended_at)
    else:
        why, who, when = "started", now.started_by, now.started_at
    return AlreadyDecided(f"Nothing more was {past}: {who} {why} {name} {at(when)}.", who, when)
