"""When history is read: every half minute, on request, and at once after many messages."""

import time
from typing import Any

import pytest

from pgqueue_admin.history import batch_loop
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.models import HistorySource, database_clock
from pgqueue_admin.workers.processes.history_process import HistoryProcess
from tests.history.tables import audit, died, put
from tests.workers.unexpected_exit import Unasked


@pytest.fixture
def five_are_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_loop, "MUCH", 5)


def taken_back(database: Any, number: int) -> None:
    """Numbers are used up but no row is left to read: no turn needs Spark."""
    database.run("begin")
    died(database, number)
    database.run("rollback")


@pytest.mark.usefixtures("five_are_much")
def test_much_is_what_came_since_the_last_turn(database: Any) -> None:
    reader = BatchLoop()
    taken_back(database, 7)
    assert not reader.much_came(), "before the first turn its time decides"
    reader.run_once()
    taken_back(database, 4)
    assert not reader.much_came()
    taken_back(database, 1)
    assert reader.much_came()
    reader.run_once()
    assert not reader.much_came()


@pytest.mark.usefixtures("five_are_much")
def test_audit_queues_count_too_and_those_that_are_gone_do_not(database: Any) -> None:
    queue, reader = audit(database), BatchLoop()
    reader.run_once()
    database.run("begin")
    for _ in range(5):
        put(database)
    database.run("rollback")
    assert reader.much_came()
    database.run(f"drop table {queue.table}")
    assert not reader.much_came()


def test_an_archive_that_is_gone_is_no_reason(database: Any) -> None:
    """The next scheduled turn reports the error."""
    reader = BatchLoop()
    reader.run_once()
    database.run("drop schema messages cascade")
    assert not reader.much_came()


@pytest.mark.usefixtures("five_are_much")
def test_a_turn_is_due_in_its_time_when_asked_and_when_much_came(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = HistoryProcess(Unasked())  # type: ignore[arg-type]
    keeping._driver.run_once()
    assert not keeping._is_due()
    taken_back(database, 5)
    assert keeping._is_due(), "much came"
    keeping._driver.run_once()
    assert not keeping._is_due()
    HistorySource.objects.update(requested_at=database_clock.now())
    assert keeping._is_due(), "somebody asked"
    HistorySource.objects.update(requested_at=None)
    assert not keeping._is_due()
    monkeypatch.setattr(keeping, "_due_at", time.monotonic())
    assert keeping._is_due(), "its time has come"
    keeping.close()
