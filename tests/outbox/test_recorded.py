"""The outbox tables that endpoints of the original left behind (fixtures: 12 of 1,164 records not dispatched)."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.outbox import Outbox, operations
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint
from tests.transport.recording_observer import Spy, finished
from tests.waiting import until

APPROVED = Path(__file__).with_name("approved") / "record.json"
UNDISPATCHED = (
    'select "MessageId" as id, "Operations"::text as operations from "Billing_OutboxData" where not "Dispatched"'
)

COMING = 'select headers from "Billing" union all select headers from "Billing.Delayed"'


@pytest.fixture
def recorded(recorded_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(recorded_database)


@pytest.fixture
def billing(recorded_database: str) -> Endpoint:
    outbox = Outbox(relay_after=timedelta(microseconds=1), keep=timedelta(days=3650))
    return Endpoint("Billing", recorded_database, settings=replace(SETTINGS, outbox=outbox))


def test_both_tables_are_fit_as_they_stand(recorded: Connection) -> None:
    for address in (Address("public", "Billing_OutboxData"), Address("Legacy", "Invoicing_OutboxData")):
        assert list(postgresql().outbox_store(address).faults(recorded)) == []


def test_recorded_operations_are_read_and_written_back_unchanged(recorded: Connection, billing: Endpoint) -> None:
    """Except addresses, which are written in full, and events, written once for each subscribed queue."""
    asked = list[list[str]]()

    def subscribers(topics: list[str]) -> list[Address]:
        asked.append(topics)
        return [Address("public", "Sales"), Address("Legacy", "Invoicing")]

    def expected(operation: dict[str, Any]) -> list[dict[str, Any]]:
        said = operation["Options"].get("Destination")
        to = [billing.addressing.canonical(billing.addressing.resolve(said))] if said else WANTED_BY
        return [operation | {"Options": {"Destination": each}} for each in to]

    for row in recorded.all(UNDISPATCHED):
        outgoing = operations.load(row.operations, billing.addressing, subscribers)
        ours, theirs = orjson.loads(operations.dump(outgoing, billing.addressing)), orjson.loads(row.operations)
        assert ours == [each for operation in theirs for each in expected(operation)]
    assert asked == [["Shop.Messages.Events.OrderBilled", "Shop.Messages.Events.IOrderEvent", "System.Object"]] * 12


WANTED_BY = ['"public"."Sales"', '"Legacy"."Invoicing"']
VOLATILE = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "an id",
    r"(?!2999)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z": "a time",
    r'(?<=OriginatingMachine": ")[^"]*': "a machine",
    r'(?<=hostid": ")[^"]*': "a host",
}


def test_a_record_of_ours_is_as_was_approved_and_as_theirs_are(
    make: MakeEndpoint,
    connection: Connection,
    connect: Callable[[str], Connection],
    database: str,
    recorded: Connection,
) -> None:
    """Each kind of send. The original requires the fields of its own records; its dispatch passes others on."""
    billing, caller = make(), connect(database)
    with caller.transaction(), billing.transactional_session(caller.raw) as session:
        session.send("Sales", {"number": 1}, type="Shop.ChargeCard, Shop")
        session.send("Sales", {"number": 2}, type="Shop.ChargeCard, Shop", ttbr=timedelta(days=1, seconds=1.5))
        session.send("Sales", {"number": 3}, type="Shop.ChargeCard, Shop", delay=timedelta(hours=1))
        session.send("Sales", {"number": 4}, type="Shop.ChargeCard, Shop", delay=datetime(2999, 1, 2, tzinfo=UTC))
        Endpoint("Sales", database, settings=SETTINGS).subscribe("Shop.Charged")
        session.publish({"number": 5}, type="Shop.Charged, Shop")
    (text,) = connection.all('select "Operations"::text as operations from "Billing_OutboxData"')[0]
    ours = orjson.loads(text)
    printed = json.dumps(ours, indent=2, sort_keys=True) + "\n"
    for pattern, name in VOLATILE.items():
        printed = re.sub(pattern, name, printed)
    assert printed == APPROVED.read_text(encoding="utf-8")
    theirs = [each for row in recorded.all(UNDISPATCHED) for each in orjson.loads(row.operations)]
    always = set.intersection(*(set(each["Headers"]) for each in theirs if "EventType" in each["Options"]))
    assert {frozenset(each) for each in ours} == {frozenset(each) for each in theirs}
    for each in ours:
        assert each["Headers"][h.MESSAGE_ID] == each["MessageId"]
        assert always - set(each["Headers"]) == LEFT_OUT


# Headers of a recorded event that ours lacks: it was published outside a handler.
LEFT_OUT = {"NServiceBus.RelatedTo"}


def test_a_record_among_thousands_is_found_and_cleaned_up(recorded: Connection, recorded_database: str) -> None:
    """The 3,633 of Invoicing: one message is delivered again, and all records are older than a day."""
    recorded.run('truncate "Legacy"."Invoicing", "Legacy"."Invoicing.Delayed"')
    spy, outbox = Spy(), Outbox(relay_after=None, keep=timedelta(days=1))
    invoicing = Endpoint(
        "Invoicing",
        recorded_database,
        schema="Legacy",
        settings=replace(SETTINGS, outbox=outbox),
        observer=cast(Any, spy),
    )

    @invoicing.handlers.handle(CHARGE)
    def charge(message: object, context: object) -> None:
        raise AssertionError("it was handled by theirs")

    of_theirs = 'select count(*) from "Legacy"."Invoicing_OutboxData"'
    assert recorded.value(of_theirs) == 3633
    again = recorded.value('select max("MessageId") from "Legacy"."Invoicing_OutboxData"')
    invoicing.send("Invoicing", 1, type=CHARGE, headers={h.MESSAGE_ID: again})
    invoicing.start()
    try:
        until(lambda: recorded.value('select count(*) from "Legacy"."Invoicing"') == 0)
        finished(invoicing)
        assert (spy.counts["duplicate"], spy.counts["failed"]) == (1, 0)
        assert recorded.value(of_theirs) == 3633
        assert isinstance(invoicing.outbox, EndpointOutbox)
        OutboxUpkeep(invoicing.outbox, invoicing.breakers.new("test")).run_once()
        assert recorded.value(of_theirs) == 0
    finally:
        invoicing.stop()


def test_the_relay_sends_what_they_left_with_its_own_ids(recorded: Connection, billing: Endpoint) -> None:
    pending = [row.operations for row in recorded.all(UNDISPATCHED)]
    assert len(pending) == 12
    wanted = {each["MessageId"] for text in pending for each in orjson.loads(text)}
    assert isinstance(billing.outbox, EndpointOutbox)
    upkeep = OutboxUpkeep(billing.outbox, billing.breakers.new("test"))
    upkeep.run_once()  # the first look; the table has no time of writing
    upkeep.run_once()
    assert recorded.all(UNDISPATCHED) == []
    came = set()
    for queue in ("Sales", "audit", "Shipping", "Shop.Web", "Mailer", '"Legacy"."Invoicing"'):
        name = queue if queue.startswith('"') else f'"{queue}"'
        came |= {h.parse(row.headers).get(h.MESSAGE_ID) for row in recorded.all(f"select headers from {name}")}
    assert wanted <= came
    assert recorded.value('select count(*) from "Billing_OutboxData"') == 1164


def test_an_endpoint_of_ours_takes_over_where_the_killed_one_stopped(
    recorded: Connection, recorded_database: str
) -> None:
    """Twelve of its forty messages were processed already; their handler does not run."""
    handled = list[str]()
    endpoint = Endpoint(
        "Billing",
        recorded_database,
        settings=replace(SETTINGS, concurrency=1, outbox=Outbox(relay_after=None, clean_every=None)),
    )

    @endpoint.handlers.handle("Shop.Messages.Commands.ChargeCard")
    def charge(message: object, context: object) -> None:
        handled.append(context.message_id)  # type: ignore[attr-defined]

    before = {row.id for row in recorded.all(UNDISPATCHED)}
    waiting = [h.parse(row.headers) for row in recorded.all(COMING)]
    charges = {each.get(h.MESSAGE_ID) for each in waiting if "ChargeCard" in (each.get(h.ENCLOSED_MESSAGE_TYPES) or "")}
    endpoint.start()
    try:
        until(lambda: recorded.all(COMING) == [])
    finally:
        endpoint.stop()
    assert before < charges
    assert set(handled) == charges - before
    assert recorded.all(UNDISPATCHED) == []
