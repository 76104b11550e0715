"""The queries of pages about processes."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from pgqueue_admin.models import Endpoint, Process, navigation_counts, processes
from pgqueue_admin.services import endpoints


@pytest.fixture
def sales(console_database: str) -> Endpoint:
    return Endpoint.objects.create(name="Sales", table="Sales", desired_processes=3)


def process(pid: int, **facts: Any) -> Process:
    made = {"role": "endpoint", "endpoint": "Sales", "host": "h", "start_ticks": 1, "state": "running", "slots": 2}
    return Process.objects.create(pid=pid, **made | {"started_at": Now(), "heartbeat_at": Now()} | facts)


def test_have_and_want_and_why_one_is_missing(sales: Endpoint) -> None:
    process(1, busy=1)
    process(2, state="draining")
    process(3, state="back-off", ended_at=Now(), next_start_at=Now() + timedelta(seconds=4), last_error="KeyError")
    process(4, state="crashed", ended_at=Now())
    process(9, role="supervisor", endpoint="")
    found = processes.of_endpoint("Sales")
    assert (found.have, found.want, found.missing) == (1, 3, 2)
    assert (found.busy, found.slots) == (1, 2)
    assert found.waiting is not None
    assert found.waiting.last_error == "KeyError"
    assert {row.pid for row in found.processes} == {1, 2, 3}, "what ended is history"


def test_process_silent_for_ten_seconds_has_lost_its_heartbeat(sales: Endpoint) -> None:
    process(1, heartbeat_at=Now() - timedelta(seconds=11))
    process(2, heartbeat_at=Now() - timedelta(seconds=3))
    found = processes.of_endpoint("Sales")
    assert [row.pid for row in found.lost] == [1]
    assert found.have == 1
    assert found.lost[0].heartbeat_age > timedelta(seconds=10)


def test_every_count_leaves_out_who_is_not_heard_of(sales: Endpoint) -> None:
    process(1, settings_version=sales.version)
    process(2, settings_version=sales.version, heartbeat_at=Now() - timedelta(seconds=11))
    process(3, settings_version=sales.version, state="draining")
    process(4, settings_version=sales.version, state="starting")
    taken = processes.taken(sales)
    assert (taken.by, taken.of) == (3, 3)
    have = processes.of_endpoint("Sales").have
    assert (navigation_counts.counts(timedelta(minutes=1)).up, have) == (2, 2)


def test_all_endpoints_cost_two_statements(sales: Endpoint, django_assert_num_queries: Any) -> None:
    Endpoint.objects.create(name="Billing", table="Billing", desired_processes=1)
    Endpoint.objects.create(name="Invoicing", table="Invoicing", ours=False)
    process(1)
    with django_assert_num_queries(2):
        found = {each.endpoint.name: each.have for each in processes.by_endpoint()}
    assert found == {"Billing": 0, "Sales": 1}


def test_how_many_took_the_newest_settings_and_how_fast(sales: Endpoint) -> None:
    row = endpoints.save_settings("Sales", {"peek_delay_ms": 500}, "ana", "console")
    process(1, settings_version=row.version, settings_at=row.changed_at + timedelta(milliseconds=200))
    process(2, settings_version=row.version - 1)
    taken = processes.taken(row)
    assert (taken.by, taken.of) == (1, 2)
    assert taken.seconds == pytest.approx(0.2)
