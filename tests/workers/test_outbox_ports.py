"""What a managed endpoint's outbox gets from the console: when records were first seen, and the audit of its relay."""

from datetime import timedelta

import pytest
from django.db import connections
from django.db.models import F

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, Endpoint, OutboxFirstSeen, outbox_first_seen
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.workers.processes.endpoint_settings import of_row
from pgqueue_admin.workers.processes.outbox_ports import DurableFirstSeen, RelayAudit
from tests.console.pages import Connect, shown
from tests.console.sampled import elsewhere, signed_in
from tests.outbox.test_upkeep import PENDING

TABLE = Address("public", "Billing_OutboxData")
HOUR = timedelta(hours=1)


@pytest.fixture
def session(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


def an_hour_goes_by() -> None:
    OutboxFirstSeen.objects.update(first_seen_at=F("first_seen_at") - HOUR)


def test_a_new_process_goes_on_where_the_one_before_began(session: Connection) -> None:
    assert DurableFirstSeen().ages(session, TABLE, ["a", "b"])["a"] < HOUR
    an_hour_goes_by()
    ages = DurableFirstSeen().ages(session, TABLE, ["a", "c"])
    assert ages.keys() == {"a", "c"}
    assert ages["a"] >= HOUR > ages["c"]


def test_records_are_timed_in_memory_without_the_console_database(session: Connection) -> None:
    seen = DurableFirstSeen()
    seen.ages(session, TABLE, ["a"])
    with elsewhere("default", PORT="1"):
        ages = seen.ages(session, TABLE, ["a", "b"])
    assert ages["a"] > timedelta()
    assert ages.keys() == {"a", "b"}
    assert set(OutboxFirstSeen.objects.values_list("record", flat=True)) == {"a"}


def test_records_over_the_limit_or_with_long_ids_are_timed_in_memory(
    session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_first_seen, "MOST", 1)
    assert DurableFirstSeen().ages(session, TABLE, ["x" * 201, "a", "b"]).keys() == {"x" * 201, "a", "b"}
    assert [row.record for row in OutboxFirstSeen.objects.all()] == ["a"]


def test_relay_of_an_endpoint_is_audited(session: Connection) -> None:
    """The outbox's page shows who relayed."""
    Engine("Sales", console_dsn()).create_queues()
    row = Endpoint.objects.create(name="Billing", table="Billing", outbox="optimistic", transaction_mode="receive_only")
    billing = Engine("Billing", console_dsn(), settings=of_row(row))
    billing.create_queues()
    assert isinstance(billing.outbox, EndpointOutbox)
    keeping = OutboxUpkeep(billing.outbox, billing.breakers.new("test"))
    keeping.run_once()
    assert not AuditEntry.objects.exists()
    session.run(PENDING, ["Sales", 3])
    keeping.run_once()
    (entry,) = AuditEntry.objects.all()
    assert (entry.who, entry.verb, entry.noun, entry.origin) == ("relay of Billing", "dispatch", "outbox", "relay")
    assert (entry.subject, entry.after) == ('"public"."Billing_OutboxData"', {"records": 3, "messages": 3})
    page = shown(signed_in(superuser=True), "/outbox/public/Billing_OutboxData/").replace("\u00a0", " ")
    assert "relay of Billing" in page
    assert "dispatched what was left in it: 3 messages of 3 records" in page


def console_dsn() -> str:
    return queue_database().dsn


def test_relay_without_the_console_database_is_logged(session: Connection, caplog: pytest.LogCaptureFixture) -> None:
    with elsewhere("default", PORT="1"):
        RelayAudit("Billing")('"public"."Billing_OutboxData"', 3, 5)
    assert '3 record(s) of "public"."Billing_OutboxData" were sent by relay of Billing; no audit entry' in caplog.text


def test_a_managed_endpoint_is_given_it() -> None:
    outbox = of_row(Endpoint(name="Billing", outbox="optimistic", transaction_mode="receive_only")).outbox
    assert isinstance(outbox.first_seen, DurableFirstSeen)  # type: ignore[union-attr]
    again = of_row(Endpoint(name="Billing", outbox="optimistic", transaction_mode="receive_only")).outbox
    assert outbox == again, "a setting that is saved anew changes no outbox"
    connections["default"].close()
