"""What a managed endpoint knows of records that do not say since when they wait: a restart forgets nothing."""

from datetime import timedelta

import pytest
from django.db import connections
from django.db.models import F

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Endpoint, OutboxFirstSeen, outbox_first_seen
from pgqueue_admin.workers.processes.durable_first_seen import DurableFirstSeen
from pgqueue_admin.workers.processes.endpoint_settings import of_row
from tests.console.pages import Connect
from tests.console.sampled import elsewhere

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


def test_while_the_console_s_database_is_away_it_counts_by_itself(session: Connection) -> None:
    seen = DurableFirstSeen()
    seen.ages(session, TABLE, ["a"])
    with elsewhere("default", PORT="1"):
        ages = seen.ages(session, TABLE, ["a", "b"])
    assert ages["a"] > timedelta()
    assert ages.keys() == {"a", "b"}
    assert set(OutboxFirstSeen.objects.values_list("record", flat=True)) == {"a"}


def test_beyond_what_is_kept_and_of_ids_that_are_too_long_it_counts_by_itself(
    session: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_first_seen, "MOST", 1)
    assert DurableFirstSeen().ages(session, TABLE, ["x" * 201, "a", "b"]).keys() == {"x" * 201, "a", "b"}
    assert [row.record for row in OutboxFirstSeen.objects.all()] == ["a"]


def test_a_managed_endpoint_is_given_it() -> None:
    outbox = of_row(Endpoint(name="Billing", outbox="optimistic", transaction_mode="receive_only")).outbox
    assert isinstance(outbox.first_seen, DurableFirstSeen)  # type: ignore[union-attr]
    again = of_row(Endpoint(name="Billing", outbox="optimistic", transaction_mode="receive_only")).outbox
    assert outbox == again, "a setting that is saved anew changes no outbox"
    connections["default"].close()
