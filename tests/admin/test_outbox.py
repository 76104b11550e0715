"""Outboxes in Django admin: rights decide who reads records; sending uses the same act as the console (O9)."""

import base64
import html
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Endpoint, ForeignOutbox, MaskingRule, Queue
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.transport import Endpoint as Engine
from tests.archived_messages import OPERATOR, person
from tests.console.pages import Connect
from tests.databases import Databases

OURS, FOREIGN = Address("public", "Billing_OutboxData"), Address("public", "Partner_OutboxData")
LIST, RECORDS, RECORD, DISPATCH = (
    f"/admin/pgqueue/foreignoutbox/{page}" for page in ("", "records/", "record/", "dispatch/")
)
VIEWER = ("view_foreignoutbox",)
HEADERS = {"NServiceBus.EnclosedMessageTypes": "Shop.<b>Charged</b>", "Shop.Customer": "Ana <i>Kovač</i>"}
SECRET = '{"card": "4111 1111"}'


@pytest.fixture
def look(console_database: str, connect: Connect) -> Connection:
    """Two pending records and one sent record in each of two outboxes: one of our endpoint, one foreign."""
    session = connect(console_database)
    shop = Engine("Sales", console_database)
    shop.create_queues()
    shop.stop()
    Queue.objects.create(schema="public", table="Sales", kind=TableKind.INPUT)
    for address in (OURS, FOREIGN):
        postgresql().outbox_store(address).create(session)
        name = postgresql().canonical(address)
        insert = f'insert into {name} ("MessageId", "Operations", "Dispatched", "DispatchedAt") values (%s, %s, %s, %s)'
        for number in (1, 2):
            session.run(insert, [f"pending {number}", operations(number), False, None])
        session.run(insert, ["sent 3", "[]", True, "2026-11-20 10:00:00"])
    Endpoint.objects.create(name="Billing", table="Billing", outbox="optimistic", transaction_mode="receive_only")
    return session


def operations(number: int) -> str:
    body = base64.b64encode(SECRET.encode()).decode()
    return json.dumps(
        [{"MessageId": f"out {number}", "Headers": HEADERS, "Body": body, "Options": {"Destination": "Sales"}}]
    )


@pytest.fixture
def sign_in(look: Connection) -> Callable[..., Client]:
    def sign_in(name: str, *permissions: str) -> Client:
        client = Client()
        client.force_login(person(name, *permissions, is_staff=True))
        return client

    return sign_in


def text(answer: Any) -> str:
    assert "<b>Charged" not in answer.content.decode()
    assert "<i>Kovač" not in answer.content.decode()
    return html.unescape(answer.content.decode())


def of(address: Address, **more: str) -> dict[str, str]:
    return {"schema": address.schema, "table": address.table, **more}


def test_all_outboxes_and_their_records_are_listed(sign_in: Callable[..., Client]) -> None:
    viewer = sign_in("vera", *VIEWER)
    page = text(viewer.get(LIST))
    assert "an endpoint here" in page
    assert "others" in page
    pending = text(viewer.get(RECORDS, of(OURS)))
    assert "pending 1" in pending
    assert "sent 3" not in pending
    dispatched = text(viewer.get(RECORDS, of(OURS, state="dispatched")))
    assert "sent 3" in dispatched
    assert "pending 1" not in dispatched
    assert viewer.get(RECORDS, of(Address("public", "Nowhere"))).status_code == 404
    assert viewer.get(RECORD, of(OURS, id="never")).status_code == 404
    assert sign_in("nobody").get(RECORDS, of(OURS)).status_code == 403


def test_a_long_list_is_paged_by_key(sign_in: Callable[..., Client], look: Connection) -> None:
    look.run("""insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
        select 'many ' || to_char(i, 'FM000'), true, now() at time zone 'utc', '[]' from generate_series(1, 60) i""")
    viewer = sign_in("vera", *VIEWER)
    first = text(viewer.get(RECORDS, of(OURS, state="dispatched")))
    assert "many 050" in first
    assert "many 051" not in first
    assert "many 051" in text(viewer.get(RECORDS, of(OURS, state="dispatched", after="many 050")))


def test_record_content_needs_the_read_right_and_is_masked(sign_in: Callable[..., Client]) -> None:
    asked = of(OURS, id="pending 1")
    page = text(sign_in("vera", *VIEWER).get(RECORD, asked))
    assert "out 1" in page
    assert "4111" not in page
    assert "Kovač" not in page
    reader = sign_in("ana", *VIEWER, "read_message")
    page = text(reader.get(RECORD, asked))
    assert "4111 1111" in page
    assert "Kovač" in page
    MaskingRule.objects.create(name="cards", kind="path", pattern="card", types=[])
    assert "4111" not in text(sign_in("ida", *VIEWER, "read_message").get(RECORD, asked))


def test_sending_asks_first_and_is_the_console_s_act(sign_in: Callable[..., Client], look: Connection) -> None:
    operator = sign_in("otto", *OPERATOR)
    asked = text(operator.post(DISPATCH, of(OURS, record="pending 2")))
    assert "Send 1\u00a0record of Billing" in asked or "Send 1 record of Billing" in asked
    assert "nothing is sent twice" in asked
    operator.post(DISPATCH, of(OURS, record="pending 2", keep="x"))
    assert look.value('select count(*) from "Sales"') == 0
    assert not AuditEntry.objects.exists()
    for _ in range(2):
        operator.post(DISPATCH, of(OURS, record="pending 2", reason="it stays down", go="x"))
    assert look.value('select count(*) from "Sales"') == 1
    (entry,) = AuditEntry.objects.all()
    assert (entry.verb, entry.origin, entry.reason) == ("dispatch", "admin", "it stays down")
    assert entry.after == {"records": 1, "messages": 1}


def test_foreign_outbox_sends_only_where_dispatch_is_allowed(sign_in: Callable[..., Client], look: Connection) -> None:
    operator = sign_in("otto", *OPERATOR)
    assert "it is only looked at" in text(operator.post(DISPATCH, of(FOREIGN, record="pending 1")))
    operator.post(DISPATCH, of(FOREIGN, record="pending 1", go="x"))
    assert look.value('select count(*) from "Sales"') == 0
    ForeignOutbox.objects.create(schema="public", table="Partner_OutboxData", dispatch_allowed=True)
    operator.post(DISPATCH, of(FOREIGN, record="pending 1", go="x"))
    assert look.value('select count(*) from "Sales"') == 1


def test_viewer_sends_nothing(sign_in: Callable[..., Client], look: Connection) -> None:
    assert sign_in("vera", *VIEWER).post(DISPATCH, of(OURS, record="pending 1", go="x")).status_code == 403
    assert look.value('select count(*) from "Sales"') == 0


def test_outboxes_of_other_databases_link_to_the_console(
    sign_in: Callable[..., Client], databases: Databases, connect: Connect, settings: Settings
) -> None:
    """For a database that does not answer, the list says that its outboxes are unknown."""
    with databases.clone("empty") as stock:
        urls = {"stock": stock, "ledger": "postgresql://nobody@127.0.0.1:1/nowhere"}
        settings.PGQUEUE = {**settings.PGQUEUE, "OUTBOX_DATABASES": urls}
        postgresql().outbox_store(Address("public", "Stock_OutboxData")).create(connect(stock))
        page = sign_in("vera", *VIEWER).get(LIST).content.decode()
    assert "/outbox/stock:public/Stock_OutboxData/" in page
    assert "Nothing is known of outboxes in the database ledger" in page
