"""Expired messages are counted by queue, type and day, each once, however often a process reports (T3, T16)."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import django.db
import pytest
from django.db import connections
from django.db.models import Sum

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Endpoint, ExpiredCount, MinimumTtbr
from pgqueue_admin.transport.wire.headers import TIME_TO_BE_RECEIVED
from pgqueue_admin.workers.processes import ttbr_recorder
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.metrics import MOST_TYPES, OTHER_TYPES, Counters
from tests.workers.test_in_flight_file import message


@pytest.mark.usefixtures("console_database")
def test_a_type_that_no_column_takes_is_counted_too() -> None:
    """Otherwise every later heartbeat would fail on it, and no other type would be counted."""
    endpoint = Endpoint.objects.create(name="Sales", table="Sales")
    kinds = ["T\0x", "Shop.Quote", "half \ud800", "T" * 600]
    ttbr_recorder.keep(endpoint, dict.fromkeys(kinds, timedelta(seconds=10)), {})
    ttbr_recorder.lost(endpoint, dict.fromkeys(kinds, 1), {})
    kept = {"T\N{SYMBOL FOR NULL}x", "Shop.Quote", "half ?", "T" * 512}
    for counted in (MinimumTtbr, ExpiredCount):
        assert set(counted.objects.values_list("message_type", flat=True)) == kept


@pytest.mark.usefixtures("console_database")
def test_each_is_added_once(tmp_path: Path) -> None:
    endpoint = Endpoint.objects.create(name="Sales", table="Sales")
    told: list[ttbr_recorder.Counts] = [{}, {}]
    reporting = [Counters(InFlightFile(tmp_path / "a")), Counters(InFlightFile(tmp_path / "b"))]
    for turn in range(3):
        for place, counters in enumerate(reporting):
            if turn < 2:
                counters.expired("Shop.Quote")
            told[place] = ttbr_recorder.lost(endpoint, counters.lost(), told[place])
    reporting[0].expired("Shop.Mail")
    ttbr_recorder.lost(endpoint, reporting[0].lost(), told[0])
    by_type = ExpiredCount.objects.values_list("message_type").annotate(Sum("number"))  # midnight may pass
    assert dict(by_type) == {"Shop.Quote": 4, "Shop.Mail": 1}
    assert str(ExpiredCount.objects.all()[0].queue) == "public.Sales"


ENDS_ITS_SESSION = """
create function ends_its_session() returns trigger language plpgsql as
    $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
create trigger ends before insert on pgqueue_console.pgqueue_expiredcount
    for each row when (new.message_type = 'Shop.Mail') execute function ends_its_session()
"""


def test_a_session_lost_between_two_types_counts_neither_twice(
    console_database: str, connect: Callable[[str], Connection]
) -> None:
    endpoint, look = Endpoint.objects.create(name="Sales", table="Sales"), connect(console_database)
    look.run(ENDS_ITS_SESSION)
    seen = {"Shop.Quote": 2, "Shop.Mail": 3, "Shop.Note": 4}
    with pytest.raises(django.db.Error):
        ttbr_recorder.lost(endpoint, seen, {})
    connections["default"].close()
    look.run("drop trigger ends on pgqueue_console.pgqueue_expiredcount")
    told = ttbr_recorder.lost(endpoint, seen, {})
    assert ttbr_recorder.lost(endpoint, seen, told) == seen
    assert dict(ExpiredCount.objects.values_list("message_type").annotate(Sum("number"))) == seen


@pytest.mark.usefixtures("console_database")
def test_two_processes_that_name_types_in_another_order_both_count() -> None:
    endpoint, start = Endpoint.objects.create(name="Sales", table="Sales"), threading.Barrier(2)
    kinds = [f"Shop.Quote{number}" for number in range(40)]

    def report(order: list[str]) -> None:
        told: ttbr_recorder.Counts = {}
        start.wait(60)
        for turn in range(1, 6):
            told = ttbr_recorder.lost(endpoint, dict.fromkeys(order, turn), told)
        connections.close_all()

    with ThreadPoolExecutor(2) as reporters:
        assert list(reporters.map(report, [kinds, kinds[::-1]])) == [None, None]
    assert ExpiredCount.objects.aggregate(Sum("number")) == {"number__sum": 400}


@pytest.mark.usefixtures("console_database")
def test_message_types_beyond_the_limit_are_counted_together(tmp_path: Path) -> None:
    """A sender may give each message its own type: that must fill neither memory nor a table."""
    endpoint, span = Endpoint.objects.create(name="Sales", table="Sales"), timedelta(seconds=10)
    counters = Counters(InFlightFile(tmp_path / "a"))
    for number in range(MOST_TYPES + 40):
        counters.expired(f"Shop.Quote{number}")
        counters.in_flight(0, message("m", f"Shop.Quote{number}", {TIME_TO_BE_RECEIVED: "00:00:10"}))
    assert (len(counters.lost()), counters.lost()[OTHER_TYPES]) == (MOST_TYPES + 1, 40)
    assert counters.ttbrs()[OTHER_TYPES] == span
    ttbr_recorder.lost(endpoint, counters.lost(), {})
    ttbr_recorder.keep(endpoint, counters.ttbrs(), {})
    after_a_restart = {f"Shop.Mail{number}": 1 for number in range(3)}
    ttbr_recorder.lost(endpoint, after_a_restart, {})
    ttbr_recorder.keep(endpoint, dict.fromkeys(after_a_restart, span / 2), {})
    assert ExpiredCount.objects.get(message_type=OTHER_TYPES).number == 43
    assert MinimumTtbr.objects.get(message_type=OTHER_TYPES).ttbr_ms == 5_000
    assert ExpiredCount.objects.count() == MinimumTtbr.objects.count() == MOST_TYPES + 1
