"""The outbox tables that endpoints of the original left behind (fixtures: 12 of 1,164 records not dispatched)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.outbox import Outbox, operations
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import SETTINGS
from tests.waiting import until

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


def test_what_they_left_is_read_and_written_back_as_it_was(recorded: Connection, billing: Endpoint) -> None:
    """But for addresses, which stand in full."""
    for row in recorded.all(UNDISPATCHED):
        outgoing = operations.load(row.operations, billing.addressing, lambda topics: [])
        ours, theirs = orjson.loads(operations.dump(outgoing, billing.addressing)), orjson.loads(row.operations)
        sends = [each for each in theirs if "Destination" in each["Options"]]
        assert [each["MessageId"] for each in ours] == [each["MessageId"] for each in sends]
        assert [each["Body"] for each in ours] == [each["Body"] for each in sends]
        assert [each["Headers"] for each in ours] == [each["Headers"] for each in sends]


def test_the_relay_sends_what_they_left_with_its_own_ids(recorded: Connection, billing: Endpoint) -> None:
    pending = [row.operations for row in recorded.all(UNDISPATCHED)]
    assert len(pending) == 12
    wanted = {each["MessageId"] for text in pending for each in orjson.loads(text)}
    assert isinstance(billing.outbox, EndpointOutbox)
    upkeep = OutboxUpkeep(billing.outbox, billing.breakers.new("test"))
    upkeep.run_once()  # sees them; the table does not say since when they wait
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
    """Twelve of its forty messages are handled already: their handler does not run."""
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
