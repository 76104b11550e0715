"""Celery's tasks find their work in PostgreSQL; beat's schedule is created once (DESIGN: rows and pick-up)."""

import pytest
from django_celery_beat.models import PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.config.celery import app
from pgqueue_admin.housekeeping import resume_operations, tasks
from pgqueue_admin.models import Operation
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, runner, selection
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import BILLING, REFUSED, dead, number_in
from tests.staged_retries import CALM, planned, sent
from tests.waiting import until


@pytest.fixture(autouse=True)
def archive(archived_console: str) -> None:
    """An archive in a cloned database."""


def run_to_the_end() -> None:
    """Repeat the task until every operation has ended: a run has a time limit, and a busy machine needs several."""
    until(lambda: tasks.run_operations() or not Operation.objects.filter(state__in=runner.UNFINISHED).exists())


def test_a_started_operation_is_picked_up_without_any_message_about_it() -> None:
    before = number_in(BILLING)
    frozen = selection.freeze("retry", [dead()[0].id], "ana", "console")
    started = [
        selection.freeze("retry", ArchiveFilter(exception=each), "ana", "console")
        for each in (REFUSED, "TimeoutException")
    ]
    for operation in started:
        lifecycle.start(operation.pk, "ana")
    run_to_the_end()
    assert list(Operation.objects.order_by("pk").values_list("state", flat=True)) == ["frozen", "done", "done"]
    assert Operation.objects.get(pk=frozen.pk).done == 0
    assert number_in(BILLING) == before + 88 + 85
    tasks.run_operations()
    assert number_in(BILLING) == before + 88 + 85


def test_a_staged_one_goes_by_its_plan_beside_one_without() -> None:
    staged = planned("ana", Planned(try_first=0, then_some=0, rest_rate=200, **CALM))
    flat = selection.freeze("retry", ArchiveFilter(exception="TimeoutException"), "ana", "console")
    lifecycle.start(flat.pk, "ana")
    until(lambda: tasks.run_operations() or Operation.objects.get(pk=staged.pk).state == "following")
    assert Operation.objects.get(pk=flat.pk).state == "done"
    assert len(sent(staged)) == 88


def test_a_fault_in_a_staged_one_is_said_and_it_is_tried_again() -> None:
    staged = planned("ana", Planned(try_first=0, then_some=0, **CALM))
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event add constraint full_disk check (verb <> 'retried')")
    tasks.run_operations()
    staged.refresh_from_db()
    assert (staged.state, sent(staged)) == ("running", [])
    assert "full_disk" in staged.last_error
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event drop constraint full_disk")
    until(lambda: tasks.run_operations() or sent(staged))


def test_failing_operation_keeps_its_error_and_is_retried() -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), "ana", "console")
    lifecycle.start(operation.pk, "ana")
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event add constraint full_disk check (verb <> 'retried')")
    tasks.run_operations()
    operation.refresh_from_db()
    assert operation.state == "running"
    assert "full_disk" in operation.last_error
    with queue_database().write_session() as connection:
        connection.run("alter table messages.archive_event drop constraint full_disk")
    run_to_the_end()
    operation.refresh_from_db()
    assert (operation.state, operation.done, operation.last_error) == ("done", 88, "")


def test_operation_stopped_by_our_bug_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stuck, other = (selection.freeze("retry", [message.id], "ana", "console") for message in dead(2, exception=REFUSED))
    for operation in (stuck, other):
        lifecycle.start(operation.pk, "ana")
    run = runner.run
    monkeypatch.setattr(runner, "run", lambda pk, until: 1 / 0 if pk == stuck.pk else run(pk, until))
    tasks.run_operations()
    for operation in (stuck, other):
        operation.refresh_from_db()
    assert (stuck.state, "ZeroDivisionError" in stuck.last_error) == ("waiting", True)
    assert (other.state, other.done) == ("done", 1)


def test_a_long_one_leaves_the_worker_free_to_stop() -> None:
    operation = selection.freeze("retry", ArchiveFilter(), "ana", "console")
    lifecycle.start(operation.pk, "ana")
    resume_operations.run_started(seconds=0)
    operation.refresh_from_db()
    assert (operation.state, operation.done + operation.failed) == ("running", 200)


def test_beats_schedule_is_made_once_and_what_is_switched_off_stays_off() -> None:
    assert set(app.conf.beat_schedule) <= set(DatabaseScheduler(app=app).schedule)
    PeriodicTask.objects.filter(name="thin samples").update(enabled=False)
    assert "thin samples" not in DatabaseScheduler(app=app).schedule
    ours = PeriodicTask.objects.filter(task__startswith="pgqueue_admin.")
    assert ours.count() == len(app.conf.beat_schedule)
    assert not ours.get(name="thin samples").enabled


def test_every_scheduled_task_exists() -> None:
    app.loader.import_default_modules()
    assert {entry["task"] for entry in app.conf.beat_schedule.values()} <= set(app.tasks)


def test_clocks_of_hosts_that_differ_by_seconds_expire_nothing() -> None:
    """Beat's clock sets the expiry, and the worker's clock checks it."""
    assert min(entry["options"]["expires"] for entry in app.conf.beat_schedule.values()) >= 60
