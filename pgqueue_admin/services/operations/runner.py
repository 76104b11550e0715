"""Doing it: chunk by chunk, each one transaction beside the queues; the operation's row follows from what is there."""

import time
from collections.abc import Callable
from typing import Any

from django.db import transaction

from pgqueue_admin.archive.messages import LARGEST_ID, MOST_HEADERS, Outcome
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting import numbers
from pgqueue_admin.models import Operation, RetryPlan, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations.kinds import kind_of

CHUNK = 200
COUNT_EVERY = 1.0  # seconds
State = Operation.State
UNFINISHED = (State.WAITING, State.RUNNING)
STEERED = (*UNFINISHED, State.PAUSED, State.STOPPED)  # with messages that may still be sent
_FOLLOWING = ("done", "skipped", "failed", "last_error", "state", "ended_at", "cancelled_by")


def run_chunk(pk: int, size: int = CHUNK) -> bool:
    """Act on the next messages of the set; whether there may be more.

    Safe to call at any time, by several at once, and again after a kill at any point: no message is acted on twice.
    """
    may_be_more = _act(pk, size)
    if may_be_more is not None:
        recount(pk)
    return bool(may_be_more)


def in_hand(operation: Operation) -> bool:
    """Whether a chunk goes on although the operation is cancelled: then its figures are not the last ones."""
    if operation.state != State.CANCELLED or operation.started_at is None:
        return False
    with queue_database().reading() as connection:
        return bool(connection.value(postgresql().operation.in_hand(), {"operation_id": operation.pk}))


def run(pk: int, until: Callable[[], bool] = lambda: False) -> None:
    """Chunk after chunk until the set is done, somebody cancels, or ``until`` says so.

    What is done is counted now and then and at the end: a count reads the whole set, and each chunk would ask for one.
    """
    count_at = time.monotonic() + COUNT_EVERY
    while _act(pk, CHUNK) and not until():
        if time.monotonic() >= count_at:
            recount(pk)
            count_at = time.monotonic() + COUNT_EVERY
    recount(pk)


def _act(pk: int, size: int) -> bool | None:
    """Whether there may be more; None where it does not run, or goes by a plan (staged_retry)."""
    Operation.objects.filter(pk=pk, state=State.WAITING, plan=None).update(state=State.RUNNING)
    operation = Operation.objects.get(pk=pk)
    goes = operation.state == State.RUNNING and not is_planned(operation)
    return chunk(operation, size) if goes else None


def is_planned(operation: Operation) -> bool:
    return RetryPlan.objects.filter(pk=operation.pk).exists()


def recount(pk: int, only_changes: bool = False) -> None:
    """Set the operation's row from its items: what was written there happened, whatever the row said.

    Whoever follows it is told in any case, as its last chunk may have ended without a change; or of changes only.
    """
    with transaction.atomic():  # the row is locked before items are counted, or an older count could overwrite a newer
        operation = Operation.objects.select_for_update().get(pk=pk)
        before, counted = _following(operation), _counted(pk)
        operation.done, operation.skipped, operation.failed = counted.done, counted.skipped, counted.failed
        lost = max(0, operation.count - counted.count)
        operation.last_error = _said(lost, operation.count) if lost else ""
        if operation.state == State.RUNNING and not counted.open:
            _end(operation, lost)
        if not only_changes or _following(operation) != before:
            operation.save(update_fields=_FOLLOWING)
            notify.announce(notify.OPERATION, str(pk))


def _following(operation: Operation) -> list[Any]:
    return [getattr(operation, name) for name in _FOLLOWING]


def _end(operation: Operation, lost: int) -> None:
    """It is done when all of its set is; what is in it no more, nobody acted on."""
    if is_planned(operation) and not lost:
        operation.state = State.FOLLOWING
        return
    operation.ended_at, operation.state = database_clock.now(), State.CANCELLED if lost else State.DONE
    if lost:
        operation.cancelled_by = "the console"


def _said(lost: int, count: int) -> str:
    return (
        f"{lost:,} of its {numbers.pluralize(count, 'message')} are in its set no more, so it did not touch them:"
        " another console on this archive may have dropped them. Choose them again."
    )


def _counted(pk: int) -> Any:
    with queue_database().reading() as connection:
        return connection.one(postgresql().operation.counts(), {"operation_id": pk})


def chunk(operation: Operation, size: int, until: int = LARGEST_ID, *, is_followed: bool = False) -> bool:
    """One transaction beside the queues; whether there may be more. ``until``: the last place that it may act on.

    ``is_followed``: as which row each was sent is kept, to see what becomes of it.
    """
    who = operation.started_by or operation.who
    with queue_database().writing() as connection, connection.transaction():
        whose = {"operation_id": operation.pk}
        connection.run(postgresql().operation.begin_chunk(), whose)
        if Operation.objects.get(pk=operation.pk).state != State.RUNNING:  # whoever cancels now sees this chunk
            return False
        near = {**whose, "limit": size, "until": until, "most": MOST_HEADERS}
        rows = connection.all(postgresql().operation.next_chunk(), near)
        outcomes = kind_of(operation.kind).do(connection, [row.archive_id for row in rows], who, operation.pk)
        _record(connection, whose, outcomes)
        if is_followed:
            _record_sent(connection, whose, outcomes)
    taken = rows[0].near if rows else 0
    return taken == size or taken > len(rows)


def _record(connection: Connection, whose: dict[str, int], outcomes: list[Outcome]) -> None:
    columns = {
        "ids": [each.archive_id for each in outcomes],
        "outcomes": [each.result for each in outcomes],
        "whys": [each.why for each in outcomes],
        "whos": [each.who_before for each in outcomes],
        "whens": [each.when_before and each.when_before.isoformat() for each in outcomes],
        "targets": [each.target for each in outcomes],
    }
    connection.run(postgresql().operation.record(), {**whose, **columns})


def _record_sent(connection: Connection, whose: dict[str, int], outcomes: list[Outcome]) -> None:
    sent = [each for each in outcomes if each.sent_as]
    if sent:
        columns = {"ids": [each.archive_id for each in sent], "sent_as": [each.sent_as for each in sent]}
        connection.run(postgresql().operation.record_sent(), {**whose, **columns})
