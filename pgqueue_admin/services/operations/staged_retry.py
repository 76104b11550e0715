"""Runs a staged retry: waits for a receiver, sends at a rate, stops or holds by itself, follows the results.

Its state is in the database: any process may take any step, and continues after a killed one.
"""

import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from pgqueue_admin.archive.crossings import is_here
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import AuditEntry, Operation, RetryPlan, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.retry_plan import Stage
from pgqueue_admin.services import unattended
from pgqueue_admin.services.operations import edits, runner, staged_figures

WAITS_AT_MOST = timedelta(hours=4)  # for a receiver
LOOK_EVERY = 1.0  # seconds; and ten times the duration of a look, so that the archive is not read all the time
LOOK_RARELY = 10.0  # seconds, while a person must decide: that may take days
GOES_ON_BELOW = 0.75  # of the ceiling
LATE = timedelta(seconds=1)  # a late chunk catches up on one second at most
A_MOMENT = 0.05  # seconds
State = Operation.State
FOLLOWED = (*runner.STEERED, State.FOLLOWING)


def open_plans() -> list[int]:
    """Return plans that still have messages to send or to follow, oldest first."""
    found = RetryPlan.objects.filter(operation__state__in=FOLLOWED)
    return list(found.order_by("pk").values_list("pk", flat=True))


def step(pk: int, now: datetime | None = None) -> float:
    """Do what is due now, one chunk at most; return in how many seconds to call again. Raises DatabaseError.

    Several processes may call it at once: each chunk is sent by one of them, and no sooner than planned.
    """
    now = now or database_clock.now()
    plan = _read(pk)
    if plan.operation.state == State.WAITING:
        if not _begins(plan, now):
            return LOOK_EVERY
        plan = _read(pk)
    if _takes_look(plan, now):
        _look(plan, now)
        plan = _read(pk)
    if plan.operation.state != State.RUNNING or plan.held or plan.looking:
        return LOOK_EVERY
    return _send(plan, now)


def _read(pk: int) -> RetryPlan:
    return RetryPlan.objects.select_related("operation").get(pk=pk)


def _begins(plan: RetryPlan, now: datetime) -> bool:
    """Whether it runs now. It waits for a receiver, and lapses after hours without one: nothing was sent."""
    waiting = Operation.objects.filter(pk=plan.pk, state=State.WAITING)
    names = map(postgresql().canonical, staged_figures.targets_of(plan.operation))
    nobody = unattended.without_receiver(names) if plan.waits else []
    if not nobody:
        begun = bool(waiting.update(state=State.RUNNING))
        _say(plan, "")
        return begun
    who = ", ".join(f"{each.address.table}: {each.says}" for each in nobody)
    since = now - plan.operation.started_at if plan.operation.started_at else timedelta()
    if since < WAITS_AT_MOST:
        left = duration((WAITS_AT_MOST - since).total_seconds())
        return _say(plan, f"Waits for a receiver. {who}. Nothing is sent; in {left} it lapses.")
    if waiting.update(state=State.LAPSED, ended_at=now):
        _say(plan, f"Nobody received for {duration(WAITS_AT_MOST.total_seconds())}, so nothing was sent. {who}.")
    return False


def _say(plan: RetryPlan, sentence: str, **more: Any) -> bool:
    """Store the sentence, and notify open pages if it changed. Return False for the caller to return."""
    changed = RetryPlan.objects.filter(pk=plan.pk).exclude(says=sentence, **more).update(says=sentence, **more)
    if changed:
        notify.announce(notify.OPERATION, str(plan.pk))
    return False


def _takes_look(plan: RetryPlan, now: datetime) -> bool:
    """Whether a look is due and this process claimed it."""
    due = Q(look_at=None) | Q(look_at__lte=now)
    return bool(
        RetryPlan.objects.filter(due, pk=plan.pk).update(look_at=now + timedelta(seconds=LOOK_EVERY), looking=True)
    )


def _look(plan: RetryPlan, now: datetime) -> None:
    began = time.monotonic()
    troubles = staged_figures.note_left(plan.pk)
    with queue_database().read_session() as connection:
        deaths = staged_figures.deaths(connection, plan)
    ready = staged_figures.most_ready(plan.operation, plan.hold_above or 0)
    _judge(plan, deaths, ready, troubles)
    if plan.operation.state == State.FOLLOWING:
        _end_if_known(plan, now)
    runner.recount(plan.pk, only_changes=True)
    rarely = plan.operation.state in (State.PAUSED, State.STOPPED)
    next_in = timedelta(seconds=max(LOOK_RARELY if rarely else LOOK_EVERY, 10 * (time.monotonic() - began)))
    RetryPlan.objects.filter(pk=plan.pk).update(look_at=now + next_in, looking=False)


def _judge(
    plan: RetryPlan, deaths: staged_figures.Deaths, ready: staged_figures.ReadyInTarget, troubles: list[str]
) -> None:
    """Stop, hold, or go on. A person's decision in the meantime stays: only a running operation is stopped."""
    figures = {"dead_now": deaths.worst, "ready_now": ready.number}
    if (sentence := _stops(plan, deaths)) and _stop(plan, sentence, held=False, **figures):
        return
    if plan.operation.state != State.RUNNING:
        RetryPlan.objects.filter(pk=plan.pk).update(**figures)
        return
    holds, watches = _holds(plan, ready), plan.says if plan.says.startswith("Watches") else ""
    _say(plan, holds or watches or " ".join(troubles), held=bool(holds), **figures)


def _stop(plan: RetryPlan, sentence: str, **more: Any) -> bool:
    """Stop a running operation; return whether it ran. The audit names the console: nobody chose to keep the rest.

    A look begun before a person resumed is void: it counted deaths that do not count any more.
    """
    runs = Operation.objects.filter(pk=plan.pk, state=State.RUNNING, plan__judged_from=plan.judged_from)
    with transaction.atomic():
        if not runs.update(state=State.STOPPED):
            return False
        about = {"who": "the console", "verb": "stop", "noun": "operation", "subject": str(plan.pk), "origin": "plan"}
        AuditEntry.objects.create(**about, operation_id=plan.pk, reason=sentence)
        _say(plan, sentence, decided_at=database_clock.now(), **more)
    return True


def _stops(plan: RetryPlan, deaths: staged_figures.Deaths) -> str:
    if not plan.stop_dead or plan.operation.state not in (State.RUNNING, State.WAITING):
        return ""
    if deaths.of_the_tried:
        return f"Stopped by itself: {deaths.of_the_tried:,} of the first {plan.tried:,} died again."
    if deaths.worst >= plan.stop_dead:
        limit = f"the plan stops at {plan.stop_dead:,} of any {plan.stop_of:,}"
        sent = "sent to one queue" if deaths.is_of_one_queue else "sent"
        return f"Stopped by itself: {deaths.worst:,} of {plan.stop_of:,} {sent} one after another died again; {limit}."
    return ""


def _holds(plan: RetryPlan, ready: staged_figures.ReadyInTarget) -> str:
    """Why it holds. An unknown ready count holds as well: it may be above the ceiling."""
    if plan.hold_above is None:
        return ""
    if ready.number is None:
        return f"Holds: what is ready in {ready.queue} is not known, {ready.blocking_reason}."
    below = round(plan.hold_above * GOES_ON_BELOW)
    if ready.number > plan.hold_above or (plan.held and ready.number >= below):
        return (
            f"Holds: {ready.number:,} ready in {ready.queue}, the plan holds above {plan.hold_above:,}"
            f" and goes on below {below:,}."
        )
    return ""


def _send(plan: RetryPlan, now: datetime) -> float:
    """Send one chunk if one is due; return the seconds until the next."""
    with queue_database().read_session() as connection:
        next_position = postgresql().operation.next_position(is_here=is_here(connection))
        position = connection.value(next_position, {"operation_id": plan.pk})
    if position is None:
        runner.recount(plan.pk)
        return LOOK_EVERY
    stage = plan.stage_of(position)
    if stage.name != "try" and position == plan.tried + 1 and plan.tried and not _watched(plan):
        return LOOK_EVERY
    most = runner.EDITED_CHUNK if plan.operation.edit else runner.LARGEST_CHUNK
    size = min(_worth(stage), stage.last - position + 1, most)
    if (left := _reserve(plan, stage, size, now)) > 0:
        return min(left, LOOK_EVERY)
    began = time.monotonic()
    runner.chunk(plan.operation, size, stage.last)
    left = (size / stage.rate if stage.rate else 0.0) - (time.monotonic() - began)
    return min(max(left, 0.0), LOOK_EVERY)


def _worth(stage: Stage) -> int:
    """Return the messages of one second, at least one."""
    return stage.count if stage.rate is None else max(1, min(int(stage.rate), runner.LARGEST_CHUNK))


def _reserve(plan: RetryPlan, stage: Stage, size: int, now: datetime) -> float:
    """Claim the time slot of this chunk: 0 if it may be sent, else the seconds to wait. The slot is stored before the
    chunk is sent, so a kill in between delays the retry but never speeds it up.
    """
    takes = timedelta(seconds=size / stage.rate) if stage.rate else timedelta()
    before = plan.next_at
    if before and before > now:
        return (before - now).total_seconds()
    from_when = max(before, now - LATE) if before else now
    taken = RetryPlan.objects.filter(pk=plan.pk, next_at=before).update(next_at=from_when + takes)
    return 0.0 if taken else takes.total_seconds() or A_MOMENT


def _watched(plan: RetryPlan) -> bool:
    """Whether the trial is over: its time has passed, none died (a death stops it), and none waits."""
    with queue_database().read_session() as connection:
        seen = staged_figures.tried(connection, plan)
        died = plan.stop_dead and staged_figures.deaths(connection, plan).of_the_tried
    if plan.judged_from >= plan.tried:
        return True  # a person saw them and resumed
    if died:
        return False  # the next look stops it
    if not seen.sent:
        none = f"none of the first {plan.tried:,} was sent, or each was taken back"
        _stop(plan, f"Stopped by itself: {none}, so they tell nothing of the rest.")
        return False
    if seen.seconds < plan.watch_seconds:
        left = duration(plan.watch_seconds - seen.seconds)
        return _say(plan, f"Watches the first {plan.tried:,} for {duration(plan.watch_seconds)}: {left} to go.")
    if not seen.waiting:
        _say(plan, "")
        return True
    return _waits(plan, seen, staged_figures.note_left(plan.pk))


def _waits(plan: RetryPlan, seen: staged_figures.FirstStage, troubles: list[str]) -> bool:
    """Wait until somebody receives the trial, up to a limit. If its queue cannot be read, this remains unknown."""
    first = f"the first {pluralize(seen.sent, 'message')}"
    waiting = f"{seen.waiting:,} of {first} wait in the queue"
    if troubles:
        waiting = f"whether somebody has taken {first} is not known"
    if seen.seconds < plan.give_up_seconds:
        after = troubles[0] if troubles else "It goes on when somebody has taken them."
        return _say(plan, f"Watches: {waiting}. {after}")
    after = f". {troubles[0]}" if troubles else ", so nobody receives."
    _stop(plan, f"Stopped by itself: {waiting} after {duration(seen.seconds)}{after}")
    return False


def _end_if_known(plan: RetryPlan, now: datetime) -> None:
    """End it when the outcome of each message is known, or when the time to wait for that is over."""
    asked = {"operation_id": plan.pk}
    with queue_database().read_session() as connection:
        if connection.value(postgresql().operation.in_hand(), asked):
            return  # a chunk begun before the cancellation is still being sent
        seconds = connection.value(postgresql().operation.since_last(), asked) or 0.0
        known = _all_known(plan, connection)
    if not known and seconds < plan.give_up_seconds:
        return
    cancelled = bool(plan.operation.cancelled_by)
    state = State.CANCELLED if cancelled else State.DONE
    with transaction.atomic():
        if Operation.objects.filter(pk=plan.pk, state=State.FOLLOWING).update(state=state, ended_at=now):
            gave_up = "" if known else f"Given up {duration(plan.give_up_seconds)} after the last was sent."
            _say(plan, gave_up)
            notify.announce(notify.OPERATION, str(plan.pk))


def _all_known(plan: RetryPlan, connection: Connection) -> bool:
    classes = {row.what for row in tally(connection, plan)}
    return not classes & {"sent", "picked", "unknown"}


def tally(connection: Connection, plan: RetryPlan, given_up: bool = False) -> list[Any]:
    """Count by stage and class: rows of stage, what, count, first_left_at. ``given_up``: wait for no outcome now."""
    sql = postgresql().operation
    last_of_some = max((each.last for each in plan.stages if each.name != "rest"), default=0)
    asked = {"operation_id": plan.pk, "tried": plan.tried, "some": last_of_some, **_known(plan, given_up)}
    return connection.all(sql.tally(known_as=sql.known_as, with_class=sql.with_class, edited_id=sql.edited_id), asked)


def items(
    connection: Connection, plan: RetryPlan, given_up: bool, after: int, classes: list[str] | None, limit: int
) -> list[Any]:
    """Return a page of the set after a position, of these classes or all: rows with ``what``, the outcome, and
    ``again_…``.
    """
    sql = postgresql().operation
    asked = {"operation_id": plan.pk, "after": after, "classes": classes, "limit": limit, **_known(plan, given_up)}
    return connection.all(
        sql.items_of_class(known_as=sql.known_as, with_class=sql.with_class, edited_id=sql.edited_id), asked
    )


def _known(plan: RetryPlan, given_up: bool) -> dict[str, Any]:
    edit = edits.of(plan.operation)
    return {**patience(plan, given_up), "seed": edit.seed if edit else None}


def patience(plan: RetryPlan, given_up: bool) -> dict[str, timedelta]:
    return {"patience": timedelta() if given_up else timedelta(seconds=plan.give_up_seconds)}
