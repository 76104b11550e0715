"""Outcomes of a staged retry's messages: received, processed, dead again; and time that passes without waiting."""

from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter, DeadMessage
from pgqueue_admin.models import Operation, RetryPlan, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, selection, staged_retry
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import BILLING, REFUSED, succeed

CALM: dict[str, Any] = {"hold_above": None, "waits": False}


def planned(person: Any, plan: Planned | None = None, **filter: Any) -> Operation:
    """A started retry of the 88 messages that died of REFUSED, unless a filter is given."""
    chosen = ArchiveFilter(**(filter or {"exception": REFUSED}))
    operation = selection.freeze("retry", chosen, person, "console", "it is back")
    return lifecycle.start(operation.pk, person, planned=plan or Planned(**CALM))


class Clock:
    """The console's clock, advanced by hand."""

    def __init__(self) -> None:
        self.now: datetime = database_clock.now()

    def after(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


def go_by(operation: Operation, seconds: float) -> None:
    """Move the times of sending and receiving so far into the past."""
    ago = {"pk": operation.pk, "ago": timedelta(seconds=seconds)}
    with queue_database().write_session() as connection:
        change = "update messages.operation_item set at = at - %(ago)s, left_at = left_at - %(ago)s"
        connection.run(f"{change} where operation = %(pk)s", ago)


def sent(operation: Operation) -> list[int]:
    """Archive ids of the sent messages, in order."""
    asked = (
        "select archive_id from messages.operation_item where operation = %(pk)s and outcome = 'done' order by position"
    )
    with queue_database().read_session() as connection:
        return [row[0] for row in connection.all(asked, {"pk": operation.pk})]


def take(operation: Operation, ids: list[int]) -> None:
    """Delete their rows, as a receiver does."""
    rows = "select sent_as::uuid from messages.operation_item where operation = %(pk)s and archive_id = any (%(ids)s)"
    with queue_database().write_session() as connection:
        connection.run(f"delete from {BILLING} where id in ({rows})", {"pk": operation.pk, "ids": ids})


def handle(operation: Operation, ids: list[int]) -> None:
    take(operation, ids)
    with queue_database().write_session() as connection:
        for each in ids:
            assert succeed(connection, each)


def die(operation: Operation, ids: list[int], **other: Any) -> None:
    """Receive the messages and archive them again, with the same cause unless ``other`` changes it."""
    take(operation, ids)
    for each in ids:
        with queue_database().write_session() as connection, connection.transaction():
            row = store.get(connection, each)
            assert row is not None
            cause = {
                name: getattr(row, name) for name in ("exception_type", "exception_message", "stack_trace")
            } | other
            token = connection.value("select retry_token from messages.message_archive where id = %(id)s", {"id": each})
            dead = DeadMessage(**{"queue": row.queue, "message_id": row.message_id, "retry_token": token, **cause})
            store.archive_failed(connection, dead)


def plan_of(operation: Operation) -> RetryPlan:
    operation.refresh_from_db()
    return RetryPlan.objects.select_related("operation").get(pk=operation.pk)


def look(operation: Operation, clock: Clock) -> RetryPlan:
    """Take the next step, which sends a chunk if one is due."""
    staged_retry.step(operation.pk, clock.after(600))
    return plan_of(operation)


def classes(operation: Operation, given_up: bool = False) -> dict[str, int]:
    """Number of messages by class, over all stages."""
    found: dict[str, int] = {}
    with queue_database().read_session() as connection:
        for row in staged_retry.tally(connection, plan_of(operation), given_up):
            found[row.what] = found.get(row.what, 0) + row.count
    return found
