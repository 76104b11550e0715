"""A table whose batches are repeatedly abandoned pauses longer each time; other tables do not wait."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.sources import retry_backoff
from pgqueue_admin.models import HistoryBatch, HistorySource, history_requests
from tests.history.failing_batch import later, planned, waiting
from tests.history.tables import put, read, told

WHY = "2 rows were planned, 1 were read, 1 differ."


@pytest.fixture
def source(database: Any) -> HistorySource:
    return waiting(database)


def given_up(database: Any, source: HistorySource) -> HistoryBatch:
    batch = planned(database, source)
    ledger.not_as_planned(batch, ledger.begin(batch, "test"), WHY)
    batch.refresh_from_db()
    return batch


def test_the_first_is_planned_anew_at_once(database: Any, source: HistorySource) -> None:
    given_up(database, source)
    assert told(source) == f"{WHY} What is there now is read soon."
    assert not retry_backoff.is_resting(source)


def test_pause_doubles_to_a_limit_from_the_second_batch_given_up(database: Any, source: HistorySource) -> None:
    given_up(database, source)
    for in_a_row, minutes in ((2, 1), (3, 2), (4, 4), (5, 8), (6, 10), (7, 10)):
        batch = given_up(database, source)
        assert batch.ended_at
        assert told(source) == (
            f"{WHY} {in_a_row} batches in a row were given up: what is there now is read after"
            f" {batch.ended_at + timedelta(minutes=minutes):%H:%M:%S} UTC, or when somebody presses Read now."
        )
        later(minutes - 0.5)
        assert retry_backoff.is_resting(source)
        later(0.5)
        assert not retry_backoff.is_resting(source)


@pytest.mark.usefixtures("history")
def test_a_driver_leaves_it_alone(database: Any, source: HistorySource) -> None:
    for _ in range(2):
        last = given_up(database, source)
    assert BatchLoop().run_once() == 0
    assert source.batches.latest("pk") == last, "nothing is planned of it"


def test_read_now_skips_the_pause_once(database: Any, source: HistorySource) -> None:
    for _ in range(3):
        given_up(database, source)
    assert retry_backoff.is_resting(source)
    history_requests.read_now(User.objects.create_user("somebody"), "console")
    source.refresh_from_db()
    assert not retry_backoff.is_resting(source)
    given_up(database, source)
    assert "4 batches in a row" in told(source)
    assert retry_backoff.is_resting(source), "once, not for ever"


def test_successful_batch_ends_the_back_off(database: Any, source: HistorySource) -> None:
    for _ in range(2):
        given_up(database, source)
    assert read(database, source) == [1]
    put(database)
    given_up(database, source)
    assert told(source) == f"{WHY} What is there now is read soon."
