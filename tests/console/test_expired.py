"""T3: an endpoint's page counts messages expired unread and dates the last one, even after its processes ended."""

from datetime import timedelta

import pytest
from django.test import Client

from pgqueue_admin.models import Endpoint, ExpiredCount, Process, Queue, database_clock
from pgqueue_admin.workers.processes import ttbr_recorder
from tests.console.pages import matched, shown

FIGURE = r"<dt>Expired</dt>(.*?)</div>"


@pytest.fixture
def sales(console_database: str) -> Endpoint:
    return Endpoint.objects.create(name="Sales", table="Sales", desired_processes=1)


def figure(client: Client) -> str:
    return " ".join(matched(f"(?s){FIGURE}", shown(client, "/endpoints/Sales/")).split())


def test_expired_messages_before_a_restart_are_counted_and_dated(as_operator: Client, sales: Endpoint) -> None:
    ttbr_recorder.lost(sales, {"Shop.Quote": 400, "Shop.Mail": 14}, {})
    ttbr_recorder.lost(sales, {"Shop.Quote": 3}, {})
    now = database_clock.now()
    for pid, expired, ended_at in ((1, 414, now), (2, 3, None)):
        about = {"role": "endpoint", "endpoint": "Sales", "host": "vm", "started_at": now, "heartbeat_at": now}
        Process.objects.create(pid=pid, start_ticks=pid, expired=expired, ended_at=ended_at, state="running", **about)
    said = figure(as_operator)
    assert ">417<" in said
    assert "the last <time" in said
    assert ">3</span></span> since these processes started" in said


def test_expiry_without_a_recorded_time_shows_its_day(as_operator: Client, sales: Endpoint) -> None:
    queue = Queue.objects.create(schema="public", table="Sales", kind="input")
    day = database_clock.now().date() - timedelta(days=40)
    ExpiredCount.objects.create(queue=queue, message_type="Shop.Quote", day=day, number=8)
    assert f"the last on {day.isoformat()}" in figure(as_operator)


def test_endpoint_without_expired_messages_shows_no_last_one(as_operator: Client, sales: Endpoint) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    said = figure(as_operator)
    assert ">0<" in said
    assert "last" not in said
