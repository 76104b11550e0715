"""Pause, resume and rate of a staged retry; a second person learns who was first."""

from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.archive.crossings import is_here
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, RetryPlan, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import plans
from pgqueue_admin.services.operations.errors import AlreadyDecided, OperationNotAllowed, OperationRefused, at
from pgqueue_admin.services.operations.runner import UNFINISHED
from pgqueue_admin.services.permissions import name_of, refusal_for

State = Operation.State


def pause(pk: int, person: Any, reason: str = "") -> Operation:
    """Send no chunk after the running one, but keep following what is sent. Raises OperationRefused."""
    operation = _allowed(pk, person, "Nothing was paused")
    with transaction.atomic():
        if not _planned(pk).filter(state__in=UNFINISHED).update(state=State.PAUSED):
            raise _too_late(pk, "Nothing was paused")
        who = {"decided_by": name_of(person), "decided_at": database_clock.now()}
        RetryPlan.objects.filter(pk=pk).update(**who, held=False, says="")
        _audit(operation, person, "pause", reason=reason)
    operation.refresh_from_db()
    return operation


def go_on(pk: int, person: Any, reason: str = "") -> Operation:
    """Resume after a pause or a stop by itself: deaths so far do not stop it again. Raises OperationRefused."""
    operation = _allowed(pk, person, "Nothing was resumed")
    position = _next_position(pk)
    with transaction.atomic():
        stopped = _planned(pk).filter(state=State.STOPPED).update(state=State.RUNNING)
        # if nothing was sent yet, it waits for a receiver again
        paused = _planned(pk).filter(state=State.PAUSED).update(state=State.WAITING if position == 1 else State.RUNNING)
        if not (stopped or paused):
            raise _too_late(pk, "Nothing was resumed")
        judged = {"judged_from": position - 1} if stopped else {}
        anew = {"decided_by": "", "decided_at": None, "says": "", "held": False, "look_at": None}
        RetryPlan.objects.filter(pk=pk).update(**anew, **judged)
        _audit(operation, person, "resume", reason=reason)
    operation.refresh_from_db()
    return operation


def change_rate(pk: int, person: Any, rate: float, before: float | None = None) -> RetryPlan:
    """Set the messages a second of this stage and the rest, from the next chunk on. Raises OperationRefused.
    ``before``: the rate that the person saw; if it differs by now, somebody else was first.
    """
    operation = _allowed(pk, person, "The rate stays as it is")
    with transaction.atomic():
        plan = RetryPlan.objects.select_for_update().filter(pk=pk).first()
        if plan is None or not _planned(pk).filter(state__in=(*UNFINISHED, State.PAUSED, State.STOPPED)).exists():
            raise _too_late(pk, "The rate stays as it is")
        if before is not None and before != plan.rest_rate:
            raise AlreadyDecided(f"The rate stays as it is: it is {plan.rest_rate:g}/s by now, you saw {before:g}/s.")
        changed = replace(plans.of(plan), rest_rate=rate, some_rate=min(plan.some_rate, rate))
        if fault := changed.fault():
            raise OperationRefused(f"The rate stays as it is. {fault.removesuffix(' Nothing has started.')}")
        said: dict[str, Any] = {"before": {"rate": plan.rest_rate}, "after": {"rate": rate}}
        plan.rest_rate, plan.some_rate, plan.next_at = changed.rest_rate, changed.some_rate, _sooner(plan)
        plan.save(update_fields=["rest_rate", "some_rate", "next_at"])
        _audit(operation, person, "set", **said)
    return plan


def _sooner(plan: RetryPlan) -> Any:
    """Send the next chunk now: at a slow rate it may be far away."""
    return min(plan.next_at, database_clock.now()) if plan.next_at else None


def _next_position(pk: int) -> int:
    with queue_database().read_session() as connection:
        position = connection.value(
            postgresql().operation.next_position(is_here=is_here(connection)), {"operation_id": pk}
        )
    return position or Operation.objects.get(pk=pk).count + 1


def _planned(pk: int) -> QuerySet[Operation]:
    return Operation.objects.filter(pk=pk, plan__isnull=False)


def _allowed(pk: int, person: Any, not_done: str) -> Operation:
    operation = Operation.objects.get(pk=pk)
    if refusal := refusal_for(person, operation.kind):
        raise OperationNotAllowed(f"{not_done}: {refusal}.")
    return operation


def _audit(operation: Operation, person: Any, verb: str, reason: str = "", **more: Any) -> None:
    about = {"who": name_of(person), "verb": verb, "noun": "operation", "subject": str(operation.pk)}
    AuditEntry.objects.create(**about, reason=reason, origin=operation.origin, operation_id=operation.pk, **more)
    notify.announce(notify.OPERATION, str(operation.pk))


def _too_late(pk: int, not_done: str) -> AlreadyDecided:
    now = Operation.objects.get(pk=pk)
    plan = RetryPlan.objects.filter(pk=pk).first()
    if plan is None:
        return AlreadyDecided(f"{not_done}: operation {pk} does not go in stages.")
    if now.cancelled_by:
        return AlreadyDecided(
            f"{not_done}: {now.cancelled_by} cancelled operation {pk} {at(now.ended_at)}.", now.cancelled_by
        )
    if now.state == State.PAUSED:
        who = plan.decided_by
        return AlreadyDecided(f"{not_done}: {who} paused operation {pk} {at(plan.decided_at)}.", who, plan.decided_at)
    words = {
        State.FROZEN: "is not started",
        State.WAITING: "waits to begin",
        State.RUNNING: "runs",
        State.STOPPED: f"stopped by itself {at(plan.decided_at)}",
        State.FOLLOWING: "has sent all, and is followed",
        State.LAPSED: f"lapsed {at(now.ended_at)}",
    }
    return AlreadyDecided(f"{not_done}: operation {pk} {words.get(State(now.state), f'ended {at(now.ended_at)}')}.")
