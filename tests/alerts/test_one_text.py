"""C6, T15, T16: page, log, ``manage.py check`` and the form's warning show one text, built by one function."""

import html
import logging
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.checks import run_checks
from django.test import Client

from pgqueue_admin.alerts import peek_delay_rules
from pgqueue_admin.alerts.dead_message_cursor import CursorReading
from pgqueue_admin.alerts.evaluation import Evaluation
from pgqueue_admin.alerts.snapshot import look
from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import Endpoint, MinimumTtbr, Queue
from pgqueue_admin.transport.settings import warn_of_peek_delay
from pgqueue_admin.workers.processes import endpoint_settings as engine

pytestmark = pytest.mark.usefixtures("console_database")
FINE_MS = 1_000
SETTINGS = {
    "max_records_to_peek": "", "concurrency": 2, "immediate_retries": 5, "delayed_retries": 3, "error_queue": "",
    "delayed_retry_step_ms": "10 s", "on_exhausted": "archive", "drain_seconds": "30 s", "batch_size": 1,
    "transaction_mode": "sends_atomic_with_receive", "repeek_after": "receives", "notify": "on",
    "outbox": "off", "outbox_isolation": "read_committed", "outbox_keep_seconds": "7 d",
    "outbox_clean_seconds": "1 min", "outbox_relay_seconds": "1 min",
}  # fmt: skip
CASES = {
    "too long": (12_000, None),
    "too short": (50, None),
    "conflict": (6_000, 5_000),
    "at risk": (5_000, 5_000),
    "at risk, as was seen": (2_000, 5_001),
}
SEEN = {
    5_001: {"delivery_buckets": [bucket(300), bucket(3_500)], "delivery_counts": [90, 10]}
}  # by TTBR: waits that are too long


@pytest.fixture
def warehouse() -> Endpoint:
    return Endpoint.objects.create(name="Warehouse", table="Warehouse", peek_delay_ms=FINE_MS)


def lives(milliseconds: int | None) -> list[MinimumTtbr]:
    queue = Queue.objects.create(schema="public", table="Warehouse", kind="input")
    if milliseconds is None:
        return []
    about = {"message_type": "Shop.Warehouse.StockHold", "ttbr_ms": milliseconds, "last_seen_at": queue.first_seen_at}
    about |= SEEN.get(milliseconds, {})
    return [MinimumTtbr.objects.create(queue=queue, **about)]


def words(text: str) -> str:
    """The visible text: no markup, plain spaces."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", text)))


def in_the_form(operator: Client, endpoint: Endpoint, delay_ms: int) -> str:
    fields = {**SETTINGS, "version": endpoint.version, "peek_delay_ms": f"{delay_ms} ms"}
    answer = operator.post("/endpoints/Warehouse/settings/", fields)
    assert answer.status_code == 422
    return words(answer.content.decode().partition("Allowed, but read this first.")[2])


def in_the_log(caplog: Any) -> str:
    now = datetime.now(UTC)
    with caplog.at_level(logging.WARNING):
        Evaluation(look(now, now, CursorReading())).run()
    return words("\n".join(caplog.messages))


def in_the_workers_log(endpoint: Endpoint, caplog: Any) -> str:
    caplog.clear()
    warn_of_peek_delay(endpoint.name, engine.of_row(endpoint))
    return words("\n".join(caplog.messages))


def in_the_check() -> str:
    found = [each for each in run_checks(databases=["default"]) if (each.id or "").startswith("pgqueue.W00")]
    return words("\n".join(f"{each.msg} {each.hint}" for each in found))


@pytest.mark.parametrize(("delay_ms", "ttbr_ms"), CASES.values(), ids=CASES)
def test_page_log_check_and_form_give_the_same_text(
    warehouse: Endpoint, operator: Client, caplog: Any, delay_ms: int, ttbr_ms: int | None
) -> None:
    ttbrs = lives(ttbr_ms)
    form = in_the_form(operator, warehouse, delay_ms)
    warehouse.peek_delay_ms = delay_ms
    warehouse.save()
    (fault,) = peek_delay_rules.faults(warehouse, ttbrs)
    said = {
        "form": form,
        "log": in_the_log(caplog),
        "check": in_the_check(),
        "warnings page": words(operator.get("/alerts/").content.decode()),
        "endpoint's page": words(operator.get("/endpoints/Warehouse/").content.decode()),
    }
    if ttbr_ms is None:
        said["worker's own log"] = in_the_workers_log(warehouse, caplog)
    silent = [where for where, text in said.items() if words(fault.sentence) not in text]
    assert silent == []


def test_beside_the_peek_delay_stand_the_shares_and_the_safe_delay(warehouse: Endpoint, operator: Client) -> None:
    lives(5_001)
    for address in ("/endpoints/Warehouse/", "/endpoints/Warehouse/?edit=1"):
        page = words(operator.get(address).content.decode())
        assert "StockHold 5.0 s 100 302 ms 3.5 s 0 % 0 % 1.4 s" in page.partition("Largest safe delay")[2]
