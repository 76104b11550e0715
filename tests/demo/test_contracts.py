"""The demo shop: its installation, its customers' actions, and failures that can be repaired."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin import transport
from pgqueue_admin.demo import audit_drain, contracts, install, publisher
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Endpoint, Queue
from pgqueue_admin.services import endpoints
from pgqueue_admin.workers.processes import registry
from tests.waiting import until


class Sent:
    """Collects what the publisher sends."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Any, dict[str, Any]]] = []

    def send(self, destination: str, message: Any, *, type: str, **more: Any) -> str:
        self.messages.append((type, message, more))
        return ""


@pytest.fixture
def customers() -> list[tuple[str, Any, dict[str, Any]]]:
    sent: Any = Sent()
    visits = publisher.visits(random.Random(7))
    for _ in range(400):
        next(visits)(sent)
    return sent.messages


def test_trouble_comes_soon_and_now_and_then(customers: list[Any]) -> None:
    assert customers[2][1]["suspicious"], "the third customer, within seconds of the start"
    assert customers[122][1]["carrier"] == "Slowpost"
    assert isinstance(customers[242][1], bytes), "a body cut off on its way"
    troubled = [
        m for _, m, _ in customers if isinstance(m, bytes) or m.get("suspicious") or m.get("carrier") == "Slowpost"
    ]
    assert len(troubled) == 4


def in_trouble(message: Any) -> bool:
    return isinstance(message, bytes) or bool(message.get("suspicious")) or message.get("carrier") == "Slowpost"


def test_prices_have_a_time_to_be_received(customers: list[Any]) -> None:
    kinds = Counter(kind for kind, _, _ in customers)
    assert kinds[contracts.QUOTE_PRICE] > 40
    assert {more["ttbr"] for kind, _, more in customers if kind == contracts.QUOTE_PRICE} == {contracts.QUOTE_LIVES}


def test_demo_installed_twice_keeps_changed_settings(console_database: str) -> None:
    install.install()
    assert {row.name for row in Endpoint.objects.all()} == set(contracts.ENDPOINTS)
    assert Queue.objects.get(schema="demo", table="error").ingest
    assert Queue.objects.get(schema="demo", table="audit").kind == "audit", "history reads what succeeded there"
    assert Queue.objects.get(schema="demo", table=contracts.BILLING).target_age_seconds == 60
    endpoints.save_settings(contracts.BILLING, {"peek_delay_ms": 5000}, "ana", "console")
    install.install()
    assert Endpoint.objects.get(name=contracts.BILLING).peek_delay_ms == 5000
    assert Endpoint.objects.count() == Queue.objects.count() - 2 == 4


def test_every_endpoint_has_handlers_and_the_web_site_its_customers() -> None:
    declared = {name: each for name, each in registry.find().items() if isinstance(each, registry.DeclaredEndpoint)}
    assert all(declared[name].types for name in contracts.ENDPOINTS)
    assert declared[contracts.WEB].companions == [publisher.run, audit_drain.run]


def test_copies_whose_time_is_over_are_cleared_away(
    console_database: str, connect: Callable[[str], Connection]
) -> None:
    """Otherwise the audit queue of a demo left running for a month would fill the disk."""
    install.install()
    web = transport.Endpoint(contracts.WEB, console_database, schema=contracts.SCHEMA)
    for ttbr in (timedelta(milliseconds=1), contracts.COPIES_LIVE, None):
        web.send(contracts.AUDIT_QUEUE, {}, type=contracts.PLACE_ORDER, ttbr=ttbr)
    until(lambda: audit_drain.clear(web) == 1)
    assert audit_drain.clear(web) == 0
    assert connect(console_database).value('select count(*) from "demo"."audit"') == 2, "of those nobody may say so yet"
    web.stop()
