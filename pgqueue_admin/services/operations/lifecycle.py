"""Starts and cancels operations, each once; a second person learns who was first."""

import logging
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, RetryPlan, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.operations import edits, plans, redirects
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused, at
from pgqueue_admin.services.operations.kinds import kind_of
from pgqueue_admin.services.operations.queries import retry_targets
from pgqueue_admin.services.operations.runner import STEERED, in_hand, recount
from pgqueue_admin.services.operations.selection import LAPSES_AFTER, forget, lapse
from pgqueue_admin.services.operations.staged_controls import pause
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.permissions import name_of, refusal_for

log = logging.getLogger(__name__)
State = Operation.State


def start(
    pk: int,
    person: Any,
    reason: str = "",
    targets: Collection[str] = (),
    planned: plans.Planned | None = None,
    rules: Collection[int] = (),
    edit: str | None = None,
) -> Operation:
    """Start the operation; housekeeping workers pick it up within a second. Raises OperationRefused.

    ``targets``: addresses of queues other than input queues that the person chose: a retry writes into these, too.
    ``planned``: stages of a retry; None: at full speed. ``rules``: numbers of the rules that the person saw.
    ``edit``: the edit that the person saw (edits.seen); None: any.
    """
    operation = Operation.objects.get(pk=pk)
    if refusal := refusal_for(person, operation.kind):
        raise OperationNotAllowed(f"Nothing was {kind_of(operation.kind).past}: {refusal}.")
    if operation.restores and (refusal := refusal_for(person, Operation.Kind.RESTORE)):
        raise OperationNotAllowed(f"Nothing was restored: {refusal}.")
    if planned:
        _refuse_plan(operation, planned)
    lapse()
    changes = {"state": State.WAITING, "started_by": name_of(person), "started_at": database_clock.now()}
    changes |= _ruled(operation, rules)
    _refuse_beyond(operation)
    changes["targets"] = sorted(map(postgresql().canonical, parsed(targets)))
    with transaction.atomic():
        if not Operation.objects.filter(pk=pk, state=State.FROZEN).update(**changes | _because(reason)):
            raise _too_late(Operation.objects.get(pk=pk))
        operation.refresh_from_db()
        if edit is not None and edit != edits.seen(operation):
            raise AlreadyDecided(
                "Nothing was retried: what changes in each was set anew since you looked. Reload the page."
            )
        if planned:
            RetryPlan.objects.create(operation=operation, **planned.as_dict())
        _audit(operation, person, planned)
        _pause_source(operation, person)
        notify.announce(notify.OPERATION, str(pk))
    return operation


def _pause_source(operation: Operation, person: Any) -> None:
    """Pause the retry whose messages are called back: they are dead again, and it would send them once more."""
    if operation.kind == Operation.Kind.CALL_BACK and operation.source:
        with suppress(OperationRefused, Operation.DoesNotExist):  # it sends no more, or has no plan
            pause(operation.source, person, f"operation {operation.pk} calls back what it has sent")


def cancel(pk: int, person: Any) -> Operation:
    """Cancel within one chunk: what is done stays done, the rest stays unchanged. Raises OperationRefused."""
    operation = Operation.objects.get(pk=pk)
    if refusal := refusal_for(person, operation.kind):
        raise OperationNotAllowed(f"Nothing was cancelled: {refusal}.")
    with transaction.atomic():
        changes = {"state": State.CANCELLED, "cancelled_by": name_of(person), "ended_at": database_clock.now()}
        asked = Operation.objects.filter(pk=pk)
        never_started = asked.filter(state=State.FROZEN).update(**changes, keeps_set=True)
        if not (never_started or _follows(asked, person) or _cancels(asked, changes)):
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


def _cancels(asked: QuerySet[Operation], changes: dict[str, Any]) -> int:
    return asked.filter(state__in=STEERED).update(**changes, last_error="")


def _follows(asked: QuerySet[Operation], person: Any) -> int:
    """Let a staged retry follow what it sent: it ends when those outcomes are known, even if the rest is cancelled."""
    begun = asked.filter(state__in=STEERED, plan__next_at__isnull=False)
    return begun.update(state=State.FOLLOWING, cancelled_by=name_of(person), last_error="")


def _ruled(operation: Operation, numbers: Collection[int]) -> dict[str, Any]:
    """Freeze the rules. A message whose first fitting rule was not chosen stays with its queue, whatever others say.

    Raises OperationRefused if one was removed since it was seen.
    """
    if not numbers or operation.kind != Operation.Kind.RETRY:
        return {"rules": []}
    if visible_queues.current() is not None:
        raise OperationNotAllowed("Nothing was retried: rules name any queue, and your groups show you some.")
    rules = [each if each.number in numbers else each._replace(target="") for each in redirects.rules()]
    if gone := set(numbers) - {each.number for each in rules}:
        raise AlreadyDecided(f"Nothing was retried: rule {min(gone)} was removed since you looked. Reload the page.")
    with queue_database().read_session() as connection:
        targets = retry_targets(connection, operation, rules)
    return {"rules": rules, "queues": targets.counts or operation.queues}


def _refuse_beyond(operation: Operation) -> None:
    """Check queue scopes here, for the person who starts it: its worker has no scope. Raises OperationRefused."""
    if operation.kind != Operation.Kind.RETRY or visible_queues.current() is None:
        return
    with queue_database().read_session() as connection:
        targets = retry_targets(connection, operation)
    if beyond := sum(each.messages for each in targets.all if queue_access.refusal_for(each.target.address)):
        raise OperationNotAllowed(f"Nothing was retried: {beyond:,} would go into queues that you may not act on.")


def _refuse_plan(operation: Operation, planned: plans.Planned) -> None:
    """Raises OperationRefused."""
    if operation.kind != Operation.Kind.RETRY:
        raise OperationRefused(f"Nothing was {kind_of(operation.kind).past}: only a retry goes in stages.")
    if fault := planned.fault():
        raise OperationRefused(f"Nothing was retried. {fault}")
    with queue_database().read_session() as connection:
        if not plans.are_kept(connection):
            raise OperationRefused(plans.NO_PLAN)


def _count(operation: Operation) -> None:
    """Recount: a killed worker's last chunk may be missing. A running chunk counts when it ends."""
    try:
        if not in_hand(operation):
            recount(operation.pk)
            operation.refresh_from_db()
    except DatabaseError as error:  # ``settle`` counts it later
        log.warning("Operation %s is cancelled, and not counted yet: %s", operation.pk, error)


def lapses_in(operation: Operation) -> timedelta:
    return max(timedelta(), operation.created_at + LAPSES_AFTER - database_clock.now())


def _because(reason: str) -> dict[str, str]:
    return {"reason": reason} if reason else {}


def _audit(operation: Operation, person: Any, planned: plans.Planned | None) -> None:
    after: dict[str, Any] = {"targets": operation.targets} if operation.targets else {}
    if operation.restores:
        after["restored"] = True
    if operation.rules:
        after["rules"] = [each._asdict() for each in redirects.of(operation)]
    if planned:
        after["plan"] = planned.as_dict()
    edit = edits.of(operation)
    before, changed = edits.said(edit) if edit else (None, {})
    where = list(operation.queues)
    AuditEntry.objects.create(
        who=name_of(person),
        verb=operation.kind,
        noun="message",
        subject=where[0][:400] if len(where) == 1 else f"{len(where)} queues",
        count=operation.count,
        reason=operation.reason,
        before=before,
        after={**after, **changed} or None,
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
    elif past == "cancelled" and now.cancelled_by:  # and still followed
        why, who, when = "cancelled", now.cancelled_by, None
    elif past == "cancelled" and now.state == State.FOLLOWING:
        return AlreadyDecided(f"Nothing was cancelled: {name} has sent all, and is followed.")
    elif past == "cancelled":
        return AlreadyDecided(f"Nothing was cancelled: {name} ended {at(now.ended_at)}.", now.started_by, now.ended_at)
    else:
        why, who, when = "started", now.started_by, now.started_at
    return AlreadyDecided(f"Nothing more was {past}: {who} {why} {name} {at(when)}.", who, when)
