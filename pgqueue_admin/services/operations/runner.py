"""Runs an operation chunk by chunk, a transaction each. The operation's row follows the committed items."""

import time
from collections.abc import Callable, Collection
from typing import Any

from django.db import transaction

from pgqueue_admin.archive.crossings import all_let_go, is_here, is_open
from pgqueue_admin.archive.messages import LARGEST_ID, MOST_HEADERS
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting import numbers
from pgqueue_admin.models import Operation, RetryPlan, database_clock, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import crossings, purge_chunk, purge_elsewhere, queries
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.item_outcomes import record
from pgqueue_admin.services.operations.kinds import kind_of

CHUNK = 200
LARGEST_CHUNK = 2_000  # messages in one transaction, at any speed
CHUNK_SECONDS = 1.0  # a slower chunk is followed by a smaller one: others wait for its locks
EDITED_CHUNK = 50  # for messages whose bodies may be read and rewritten
COUNT_EVERY = 1.0  # seconds at least; and ten times the duration of a count
State = Operation.State
UNFINISHED = (State.WAITING, State.RUNNING)
STEERED = (*UNFINISHED, State.PAUSED, State.STOPPED)  # messages may still be sent
_OF_QUEUES = (Operation.Kind.PURGE, Operation.Kind.CALL_BACK)  # they lock messages that receivers may want
_FOLLOWING = ("done", "skipped", "failed", "last_error", "state", "ended_at", "cancelled_by")


def run_chunk(pk: int, size: int = CHUNK) -> bool:
    """Act on the next messages of the set; return whether there may be more.

    Safe to call at any time, concurrently, and again after a kill at any point: no message is acted on twice.
    """
    may_be_more = _act(pk, size)
    if may_be_more is not None:
        recount(pk)
    return bool(may_be_more)


def in_hand(operation: Operation) -> bool:
    """Whether a chunk still runs although the operation is cancelled: its figures may still change."""
    if operation.state != State.CANCELLED or operation.started_at is None:
        return False
    with queue_database().read_session() as connection:
        asked = {"operation_id": operation.pk}
        return bool(connection.value(postgresql().operation.in_hand(), asked)) or is_open(connection, operation.pk)


def run(pk: int, until: Callable[[], bool] = lambda: False) -> None:
    """Run chunks until the set is done, somebody cancels, or ``until`` returns true.

    It recounts at intervals and at the end, not after each chunk: a count reads the whole set. The duration of a chunk
    decides the size of the next.
    """
    size, began = CHUNK, time.monotonic()
    count_at = began + COUNT_EVERY
    while _act(pk, size) and not until():
        ended = time.monotonic()
        size = _next_size(size, ended - began)
        if ended >= count_at:
            recount(pk)
            count_at = time.monotonic() + max(COUNT_EVERY, 10 * (time.monotonic() - ended))
        began = time.monotonic()
    recount(pk)


def _next_size(size: int, seconds: float) -> int:
    if seconds > CHUNK_SECONDS:
        return max(size // 2, CHUNK)
    return min(2 * size, LARGEST_CHUNK) if seconds < CHUNK_SECONDS / 2 else size


def _act(pk: int, size: int) -> bool | None:
    """Run a chunk and return whether there may be more; None if it is not running, or has a plan (staged_retry)."""
    Operation.objects.filter(pk=pk, state=State.WAITING, plan=None).update(state=State.RUNNING)
    operation = Operation.objects.get(pk=pk)
    goes = operation.state == State.RUNNING and not is_planned(operation)
    return chunk(operation, min(size, CHUNK) if operation.kind in _OF_QUEUES else size) if goes else None


def is_planned(operation: Operation) -> bool:
    return RetryPlan.objects.filter(pk=operation.pk).exists()


def recount(pk: int, only_changes: bool = False) -> None:
    """Set the operation's row from its items: they record what happened, whatever the row said.

    Listeners are notified in any case, as the last chunk may end without a change; or of changes only.
    """
    for number in _took_from(pk):
        recount(number, only_changes=True)  # before this one can end: afterwards no process returns to it
    with transaction.atomic():  # the row is locked before items are counted, or an older count could overwrite a newer
        operation = Operation._base_manager.select_for_update().get(pk=pk)  # whatever the person may see
        before, counted = _following(operation), _counted(pk)
        operation.done, operation.skipped, operation.failed = counted.done, counted.skipped, counted.failed
        lost = max(0, operation.count - counted.count)
        operation.last_error = _said(lost, operation.count) if lost else ""
        if operation.kind == Operation.Kind.PURGE:
            lost = _purged(operation, counted)
        if operation.state == State.RUNNING and not counted.open:
            _end(operation, lost)
        if not only_changes or _following(operation) != before:
            operation.save(update_fields=_FOLLOWING)
            notify.announce(notify.OPERATION, str(pk))


def _took_from(pk: int) -> Collection[int]:
    """Return operations whose figures this one changed by taking back what they sent. A purge does so at its end."""
    operation = Operation._base_manager.only("kind", "source", "state").get(pk=pk)
    if operation.kind == Operation.Kind.PURGE and (operation.state != State.RUNNING or not _counted(pk).open):
        with queue_database().read_session() as connection:
            found = connection.all(postgresql().purge.taken_back(), {"operation_id": pk})
        return queries.counted_here(row.operation for row in found)
    return [operation.source] if operation.source else []


def _purged(operation: Operation, counted: Any) -> int:
    """Set a purge's figures: its items are what it took, and one open item until it ends. Return how many are lost."""
    lost = 0 if counted.count else operation.count
    rest = 0 if counted.open or lost else max(0, operation.count - counted.done)
    operation.skipped, operation.failed = (0, rest) if counted.failed else (rest, 0)
    operation.last_error = _said(lost, operation.count) if lost else ""
    if counted.failed:
        with queue_database().read_session() as connection:
            operation.last_error = purge_chunk.why_stopped(connection, operation)
    return lost


def _following(operation: Operation) -> list[Any]:
    return [getattr(operation, name) for name in _FOLLOWING]


def _end(operation: Operation, lost: int) -> None:
    """End the operation once its whole set is done. Messages no longer in the set were not acted on."""
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
    with queue_database().read_session() as connection:
        return connection.one(postgresql().operation.counts(), {"operation_id": pk})


def chunk(operation: Operation, size: int, until: int = LARGEST_ID) -> bool:
    """Run one transaction beside the queues, and one in each other database; return whether there may be more.
    ``until``: the last position that it may act on.
    """
    who = operation.started_by or operation.who
    if operation.kind == Operation.Kind.PURGE:
        return (
            purge_elsewhere.chunk(operation, size)
            if purge_elsewhere.is_there(operation)
            else _purge_chunk(operation, size)
        )
    if operation.kind in (Operation.Kind.RETRY, Operation.Kind.CALL_BACK):
        crossings.settle(operation.pk)
    with queue_database().write_session() as connection, all_let_go(connection):
        with connection.transaction():
            may_be_more = _chunk(connection, operation, who, size, until)
        crossings.carry(connection, operation.pk)
    return may_be_more


def _chunk(connection: Connection, operation: Operation, who: str, size: int, until: int) -> bool:
    """Run it in the caller's transaction; return likewise."""
    whose = {"operation_id": operation.pk}
    connection.run(postgresql().operation.begin_chunk(), whose)
    if Operation.objects.get(pk=operation.pk).state != State.RUNNING:  # a person who cancels now sees this chunk
        return False
    size = min(size, EDITED_CHUNK) if operation.edit else size
    near = {**whose, "limit": size, "until": until, "most": MOST_HEADERS}
    rows = connection.all(postgresql().operation.next_chunk(is_here=is_here(connection)), near)
    outcomes = kind_of(operation.kind).do(connection, [row.archive_id for row in rows], who, operation.pk)
    record(connection, whose, outcomes)
    taken = rows[0].near if rows else 0
    return bool(taken == size or taken > len(rows))


def _purge_chunk(operation: Operation, size: int) -> bool:
    with queue_database().write_session() as connection:
        refusal = purge_chunk.refusal(connection, operation)
        with connection.transaction():
            alone = connection.value(postgresql().purge.begin_chunk(), {"operation_id": operation.pk})
            if not alone or Operation.objects.get(pk=operation.pk).state != State.RUNNING:
                return False
            try:
                if refusal:
                    raise OperationRefused(refusal)
                with connection.transaction():
                    ids = purge_chunk.take(connection, operation, size)
                    _record_purged(connection, operation, ids)
            except purge_chunk.STOPS as error:
                purge_chunk.stop(connection, operation, str(error))
                return False
    return bool(ids)


def _record_purged(connection: Connection, operation: Operation, ids: list[int]) -> None:
    purge_chunk.record(connection, operation, ids)
