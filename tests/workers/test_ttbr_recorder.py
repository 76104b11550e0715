"""T16: the smallest recent time to be received of each type is kept, so a fixed sender ends the warning."""

from datetime import timedelta
from pathlib import Path

import pytest

from pgqueue_admin.models import Endpoint, MinimumTtbr, Queue, database_clock
from pgqueue_admin.transport.wire.headers import TIME_TO_BE_RECEIVED
from pgqueue_admin.workers.processes import ttbr_recorder
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.metrics import Counters
from pgqueue_admin.workers.reporting.reporter import Reporter
from tests.workers.test_in_flight_file import message

SHORT, LONG = timedelta(milliseconds=80), timedelta(seconds=60)


@pytest.fixture
def queue(console_database: str) -> Queue:
    return Queue.objects.create(schema="public", table="Sales", kind="input")


def kept() -> list[int]:
    return list(MinimumTtbr.objects.values_list("ttbr_ms", flat=True))


def seen(ago: timedelta) -> None:
    MinimumTtbr.objects.update(last_seen_at=database_clock.now() - ago)


def test_the_shortest_stays_while_longer_ones_come(queue: Queue) -> None:
    for span in (SHORT, LONG, SHORT, LONG):
        ttbr_recorder.keep_one(queue, "Blink", span)
    assert kept() == [80]


def test_a_longer_one_takes_its_place_when_it_was_not_seen_for_days(queue: Queue) -> None:
    ttbr_recorder.keep_one(queue, "Blink", SHORT)
    seen(ttbr_recorder.LAPSES_AFTER + timedelta(minutes=1))
    ttbr_recorder.keep_one(queue, "Blink", LONG)
    assert kept() == [60_000]


def test_the_shortest_that_is_seen_again_stays_for_as_long_again(queue: Queue) -> None:
    ttbr_recorder.keep_one(queue, "Blink", SHORT)
    seen(ttbr_recorder.LAPSES_AFTER + timedelta(minutes=1))
    ttbr_recorder.keep_one(queue, "Blink", SHORT)
    ttbr_recorder.keep_one(queue, "Blink", LONG)
    assert kept() == [80]


def test_smallest_ttbr_is_kept_until_its_type_is_unseen_for_long(queue: Queue) -> None:
    """An empty queue keeps it too."""
    ttbr_recorder.keep_one(queue, "Blink", SHORT)
    seen(ttbr_recorder.FORGOTTEN_AFTER - timedelta(days=1))
    ttbr_recorder.forget()
    assert kept() == [80]
    seen(ttbr_recorder.FORGOTTEN_AFTER + timedelta(minutes=1))
    ttbr_recorder.forget()
    assert kept() == []


@pytest.mark.parametrize("span", ["-00:00:05", "00:00:00"])
def test_a_span_that_no_message_can_have_is_none(tmp_path: Path, span: str) -> None:
    counters = Counters(InFlightFile(tmp_path / "hand"))
    for each in (span, "00:00:10"):
        counters.in_flight(0, message("m", "Blink", {TIME_TO_BE_RECEIVED: each}))
    assert counters.ttbrs() == {"Blink": timedelta(seconds=10)}


def test_a_process_that_runs_for_days_tells_of_the_longer_one(console_database: str, tmp_path: Path) -> None:
    endpoint = Endpoint.objects.create(name="Sales", table="Sales")
    counters, now = Counters(InFlightFile(tmp_path / "hand")), 1_000.0
    reporter = Reporter(endpoint, counters, lambda row: None, lambda: "running", "1", monotonic=lambda: now)

    def takes(span: str) -> None:
        counters.in_flight(0, message("m", "Blink", {TIME_TO_BE_RECEIVED: span}))
        reporter.beat()

    takes("00:00:00.08")
    takes("00:01:00")
    assert kept() == [80]
    seen(ttbr_recorder.LAPSES_AFTER + timedelta(minutes=1))
    now += ttbr_recorder.AGAIN_AFTER.total_seconds() + 1
    reporter.beat()
    takes("00:01:00")
    assert kept() == [60_000]
