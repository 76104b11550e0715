"""Figures of one endpoint process."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile, read
from pgqueue_admin.workers.reporting.metrics import Counters
from tests.workers.test_in_flight_file import message


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(InFlightFile(tmp_path / "hand"))


def test_everything_that_happens_is_counted(tmp_path: Path) -> None:
    began = time.monotonic()
    counters = Counters(InFlightFile(tmp_path / "hand"))
    counters.received(message("a"))
    counters.received(message("b"))
    counters.handled(0.010)
    counters.critical_time(0.500)
    counters.failed(KeyError("customer"))
    counters.retried()
    row = counters.row()
    assert (row["received"], row["handled"], row["failed"], row["retried"]) == (2, 1, 1, 1)
    assert row["last_error"] == "KeyError: 'customer'"
    first = row["last_error_at"]
    counters.failed(KeyError("customer"))
    assert counters.row()["last_error_at"] > first > datetime.now(UTC) - timedelta(minutes=5)  # type: ignore[operator]
    assert (row["processing_p95_ms"], row["critical_p50_ms"]) == (10, 500)
    assert 1 / max(1.0, time.monotonic() - began) <= float(str(row["handled_per_second"])) <= 1


def test_more_than_percentiles_remember_are_counted_all_the_same(tmp_path: Path) -> None:
    began = time.monotonic()
    counters = Counters(InFlightFile(tmp_path / "hand"))
    for _ in range(5_000):
        counters.handled(0.001)
    assert float(str(counters.row()["handled_per_second"])) >= 5_000 / max(1.0, time.monotonic() - began)


def test_expired_messages_are_counted_with_the_last_time(counters: Counters) -> None:  # T3
    assert counters.row()["last_expired_at"] is None
    counters.expired("Shop.Quote")
    assert counters.row()["expired"] == 1
    assert counters.row()["last_expired_at"] is not None


def test_the_smallest_ttbr_of_each_type_is_kept(counters: Counters) -> None:  # T16
    for kind, ttbr in [("Shop.Quote", "00:00:20"), ("Shop.Quote", "00:00:05"), ("Shop.Mail", "00:00:10")]:
        counters.in_flight(0, message("m", kind, {"NServiceBus.TimeToBeReceived": ttbr}))
    counters.in_flight(0, message("m", "Shop.Order"))
    assert counters.ttbrs() == {"Shop.Quote": timedelta(seconds=5), "Shop.Mail": timedelta(seconds=10)}


def test_busy_slots_are_those_with_something_in_hand(counters: Counters, tmp_path: Path) -> None:
    counters.in_flight(0, message("a"))
    counters.in_flight(1, message("b"))
    counters.in_flight(0, None)
    assert counters.row()["busy"] == 1
    assert [held.message_id for held in read(tmp_path / "hand")] == ["b"]


def test_without_messages_there_are_no_percentiles(counters: Counters) -> None:
    row = counters.row()
    assert (row["critical_p50_ms"], row["processing_p95_ms"], row["handled_per_second"]) == (None, None, 0)
