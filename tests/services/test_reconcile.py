"""Cleaning up after abandoned operations: sets never started, and acts committed but not counted."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.models import Operation, notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import lifecycle, queries, reconcile, runner, selection
from tests.archived_messages import REFUSED, dead

State = Operation.State


def test_a_set_that_could_not_be_dropped_is_dropped_later(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancelled while the queue database is away: the operation ends at once, its set is dropped later."""
    cancelled = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lapsed = selection.freeze("retry", [dead()[0].id], ana, "console")
    with monkeypatch.context() as patch:
        patch.setattr(selection, "queue_database", _away)
        assert lifecycle.cancel(cancelled.pk, ana).state == State.CANCELLED
        assert selection.lapse(timezone.now() + timedelta(minutes=31)) == 1
    for operation in (cancelled, lapsed):
        with queue_database().read_session() as connection:
            assert queries.items(connection, operation.pk)
    reconcile.settle()
    for operation in (cancelled, lapsed):
        with queue_database().read_session() as connection:
            assert queries.items(connection, operation.pk) == []


def test_a_cancelled_one_is_counted_even_if_nobody_lived_to_count_it(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    runner.run_chunk(operation.pk, 40)
    lifecycle.cancel(operation.pk, ana)
    Operation.objects.filter(pk=operation.pk).update(done=0)  # as if killed between commit and counting
    reconcile.settle()
    operation.refresh_from_db()
    assert (operation.state, operation.done) == (State.CANCELLED, 40)


def test_old_cancelled_operation_is_announced_if_its_count_changed(ana: User) -> None:
    operation = selection.freeze("retry", ArchiveFilter(exception=REFUSED), ana, "console")
    lifecycle.start(operation.pk, ana)
    runner.run_chunk(operation.pk, 40)
    ended = lifecycle.cancel(operation.pk, ana).ended_at
    assert ended
    with notify.listen(notify.OPERATION) as listener:
        for minute in range(10, 200):
            reconcile.settle(ended + timedelta(minutes=minute))
        assert list(listener.notifications(0.1)) == []
        Operation.objects.filter(pk=operation.pk).update(done=0)
        for minute in range(200, 261):
            reconcile.settle(ended + timedelta(minutes=minute))
        assert [each.payload for each in listener.notifications(0.1)] == [str(operation.pk)]
    operation.refresh_from_db()
    assert operation.done == 40


def test_old_cancelled_operation_is_seldom_recounted(ana: User, monkeypatch: pytest.MonkeyPatch) -> None:
    operation = selection.freeze("retry", [dead()[0].id], ana, "console")
    lifecycle.start(operation.pk, ana)
    ended, counted, count = lifecycle.cancel(operation.pk, ana).ended_at, [], runner._counted
    assert ended

    def counting(pk: int) -> Any:
        counted.append(pk)
        return count(pk)

    monkeypatch.setattr(runner, "_counted", counting)
    around_each_hour = (minute for minute in range(120, 24 * 60) if minute % 60 in (58, 59, 0, 1, 2, 30))
    for minute in (*range(120), *around_each_hour):
        reconcile.settle(ended + timedelta(minutes=minute, seconds=7))
    assert len(counted) == 10 + 23


def _away() -> Any:
    raise DatabaseDown("connection refused")
