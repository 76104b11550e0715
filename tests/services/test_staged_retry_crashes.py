"""The runner of a staged retry is killed repeatedly: each message is sent once, never faster than planned."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission, User

from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.models import Operation, RetryPlan
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import edits, lifecycle, selection, staged_retry
from pgqueue_admin.services.operations.plans import Planned
from pgqueue_admin.transport.wire import headers as h
from tests.archived_messages import BILLING, REFUSED, events_of, number_in
from tests.staged_retries import CALM, Clock, planned, sent
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ('"public"."Sales"', '"public"."Billing"', '"public"."Shipping"', '"public"."Shop.Web"')
KILLS = 6

RUNNER = """
import django
django.setup()
from pgqueue_admin.housekeeping import resume_operations
print("runs", flush=True)
while True:
    resume_operations.run_started()
"""
# Dies after reserving a chunk's time, before sending the chunk or before counting it.
DIES = """
import os, signal, sys
import django
django.setup()
from pgqueue_admin.services.operations import runner, staged_retry

def die(*arguments, **more):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(runner, sys.argv[2], die)
while True:
    staged_retry.step(int(sys.argv[1]))
"""


@contextmanager
def process(code: str, dsn: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = {
        "DATABASE_URL": dsn, "QUEUES_URL": dsn, "PGQUEUE_QUEUE_SCHEMAS": "public,Legacy", "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.settings", "PGQUEUE_STATE_DIR": "/nonexistent/var",
    }  # fmt: skip
    command = [sys.executable, "-c", code, *arguments]
    started = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        started.kill()
        started.wait(60)


@pytest.mark.parametrize(("where", "sent_by_the_killed"), [("chunk", 0), ("record", 0), ("recount", 20)])
def test_a_kill_at_a_bad_moment_costs_a_chunks_time_and_nothing_else(
    archived_console: str, ana: User, where: str, sent_by_the_killed: int
) -> None:
    """``recount`` runs with the next look: the chunk before it was committed."""
    operation = planned(ana, Planned(try_first=0, then_some=0, stop_dead=0, **CALM))
    RetryPlan.objects.filter(pk=operation.pk).update(look_at=None if where == "recount" else far())
    if where == "recount":
        staged_retry.step(operation.pk, Clock().now)
        due_later = Clock().after(60)  # a process that starts slowly must do the look, not a chunk
        RetryPlan.objects.filter(pk=operation.pk).update(look_at=None, next_at=due_later)
    with process(DIES, archived_console, str(operation.pk), where) as runner:
        assert runner.wait(60) == -signal.SIGKILL
    assert len(sent(operation)) == sent_by_the_killed
    assert events_of(operation.pk) == sent_by_the_killed
    plan = RetryPlan.objects.get(pk=operation.pk)
    assert plan.next_at, "what the killed one had taken is taken: the next chunk comes later, not twice"
    clock = Clock()
    while operation.state != Operation.State.FOLLOWING:
        staged_retry.step(operation.pk, clock.after(2))
        operation.refresh_from_db()
    assert len(sent(operation)) == len(set(sent(operation))) == events_of(operation.pk) == 88


def far() -> object:
    return Clock().after(3600)


@pytest.mark.chaos
def test_thousands_are_each_sent_once_whoever_is_killed(archived_console: str, ana: User) -> None:
    before = {queue: number_in(queue) for queue in TARGETS}
    operation = selection.freeze("retry", ArchiveFilter(state="dead"), ana, "console", "all mended")
    plan = Planned(try_first=5, watch_seconds=0, then_some=95, some_rate=50, rest_rate=150, stop_dead=0, **CALM)
    lifecycle.start(operation.pk, ana, planned=plan)
    RetryPlan.objects.filter(pk=operation.pk).update(judged_from=5)  # there is no receiver

    for kill in range(KILLS):
        with process(RUNNER, archived_console) as runner, process(RUNNER, archived_console):
            assert runner.stdout
            runner.stdout.readline()
            enough = 100 * (kill + 1)
            until(lambda enough=enough: len(sent(operation)) >= enough, what=f"{enough} sent")  # type: ignore[misc]
    left_open = operation.count - acted(operation)
    assert 0 < left_open < operation.count

    clock = Clock()
    while operation.state != Operation.State.FOLLOWING:
        staged_retry.step(operation.pk, clock.after(2))
        operation.refresh_from_db()
    assert (operation.count, operation.done, operation.skipped, operation.failed) == (2597, 2570, 0, 27)
    assert {queue: number_in(queue) - before[queue] for queue in TARGETS} == dict(
        zip(TARGETS, (1745, 367, 233, 127), strict=True)
    )
    assert events_of(operation.pk) == 2570
    assert rows_sent(operation) == 2570, "each item names its own row"


def test_edited_messages_are_each_sent_once_whoever_is_killed(archived_console: str, ana: User) -> None:
    """Two runners are killed while they send: each message exists once, edited, under its one id."""
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console", "misspelt")
    ana.user_permissions.add(Permission.objects.get(codename="read_message"))
    editor = User.objects.get(pk=ana.pk)
    edits.propose(operation.pk, MessageEdit("header", "Tenant", "add", "blue"), editor)
    plan = Planned(try_first=5, watch_seconds=0, then_some=0, rest_rate=4, stop_dead=0, **CALM)
    lifecycle.start(operation.pk, editor, planned=plan)
    RetryPlan.objects.filter(pk=operation.pk).update(judged_from=5)
    for enough in (5, 15, 25):
        assert acted(operation) < operation.count, "each time there is more to send"
        with process(RUNNER, archived_console) as runner, process(RUNNER, archived_console):
            assert runner.stdout
            runner.stdout.readline()
            until(lambda enough=enough: len(sent(operation)) >= enough, what=f"{enough} sent")  # type: ignore[misc]
    clock = Clock()
    while operation.state != Operation.State.FOLLOWING:
        staged_retry.step(operation.pk, clock.after(2))
        operation.refresh_from_db()
    assert (operation.count, operation.done, events_of(operation.pk)) == (88, 88, 88)
    with queue_database().read_session() as connection:
        rows = connection.all(f"select headers from {BILLING} where headers like '%%Pgqueue.EditOf%%'")
    found = [h.parse(row.headers) for row in rows]
    ids = {edits.sent_as(operation, each) for each in sent(operation)}
    assert len(found) == len(ids) == 88
    assert {each[h.MESSAGE_ID] for each in found} == ids
    assert {each["Tenant"] for each in found} == {"blue"}


def acted(operation: Operation) -> int:
    return count(operation, "outcome is not null")


def rows_sent(operation: Operation) -> int:
    asked = "select count(distinct sent_as) from messages.operation_item where operation = %(pk)s"
    with queue_database().read_session() as connection:
        return int(connection.value(asked, {"pk": operation.pk}))


def count(operation: Operation, which: str) -> int:
    asked = f"select count(*) from messages.operation_item where operation = %(pk)s and {which}"
    with queue_database().read_session() as connection:
        return int(connection.value(asked, {"pk": operation.pk}))
