"""The story of a conversation, line by line, from messages that our endpoints really exchanged."""

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.db import connection as django_connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from pgqueue_admin.archive import conversations as archive
from pgqueue_admin.archive import ingester
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import conversations
from pgqueue_admin.services.operations import single
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as wire
from tests.console.pages import Connect, matched, shown
from tests.console.recorded import Recorded
from tests.console.sampled import elsewhere, sample
from tests.history.files import TEN, message, write
from tests.waiting import until

ERRORS = Address("public", "error")
QUICK = EndpointSettings(
    peek_delay=0.1, notify=False, concurrency=1, immediate_retries=0, delayed_retries=0, on_exhausted="error_queue"
)
AUDITED = replace(QUICK, audit_queue="audit")
HOST = socket.gethostname()
PLACE, CHARGE, PLACED, CHARGED = "Shop.PlaceOrder", "Shop.ChargeCard", "Shop.OrderPlaced", "Shop.CardCharged"


class GatewayTimeout(Exception):
    pass


class Shop:
    """Web sends to Sales, which publishes to Loyalty and Shipping and sends to Billing, whose gateway may be down."""

    def __init__(self, dsn: str):
        self.gateway_is_down = True
        sales, billing, loyalty = Handlers(), Handlers(), Handlers()
        sales.handle(PLACE)(self._place)
        sales.handle(CHARGED)(lambda charged, context: None)
        billing.handle(CHARGE)(self._charge)
        loyalty.handle(PLACED)(self._thank)
        self.web = Endpoint("Web", dsn, settings=QUICK)
        self.sales = Endpoint("Sales", dsn, settings=AUDITED, handlers=sales)
        self.billing = Endpoint("Billing", dsn, settings=AUDITED, handlers=billing)
        self.loyalty = Endpoint("Loyalty", dsn, settings=QUICK, handlers=loyalty)
        self.shipping = Endpoint("Shipping", dsn, settings=QUICK)
        self.mails = Endpoint("Mails", dsn, settings=QUICK)
        self.all = [self.web, self.sales, self.billing, self.loyalty, self.shipping, self.mails]
        for endpoint in self.all:
            endpoint.create_queues()
        self.loyalty.subscribe(PLACED)
        self.shipping.subscribe(PLACED)

    def _place(self, order: object, context: MessageContext) -> None:
        context.publish(order, type=PLACED)
        context.send("Billing", order, type=CHARGE)

    def _thank(self, order: object, context: MessageContext) -> None:
        context.send("Mails", {}, type="Shop.SendMail")

    def _charge(self, order: object, context: MessageContext) -> None:
        if self.gateway_is_down:
            raise GatewayTimeout("no answer within 30 s")
        context.reply(order, type=CHARGED)


@pytest.fixture
def shop(console_database: str) -> Iterator[Shop]:
    made = Shop(console_database)
    yield made
    for endpoint in made.all:
        endpoint.stop(drain_seconds=0)


def text(page: str) -> str:
    page = re.sub(r"<wbr>", "", page)
    page = re.sub(r"<svg class=\"i\".*?</svg>|<script.*?</script>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def lines(page: str) -> list[str]:
    """The lines of the list, without times."""
    rows = re.findall(r'<tr role="row" class=.*?</tr>', page, re.DOTALL)
    return [re.sub(r"\d\d:\d\d:\d\d\.\d{3} ", "", text(row)) for row in rows]


def story(page: str) -> list[str]:
    steps = re.findall(r"<li>.*?</li>", re.findall(r'<ol class="tl">.*?</ol>', page, re.DOTALL)[0], re.DOTALL)
    return [re.sub(r"^\d\d:\d\d:\d\d\.\d{3} ", "", text(step)) for step in steps]


@pytest.fixture
def looks(operator: User) -> Client:
    client = Client()
    client.force_login(operator)
    return client


def count(connection: Connection, table: str) -> Callable[[], int]:
    return lambda: int(connection.value(f'select count(*) from "{table}"'))


def test_a_conversation_reads_true_line_by_line(
    shop: Shop, looks: Client, operator: User, console_database: str, connect: Connect
) -> None:
    connection = connect(console_database)
    shop.web.send("Sales", {"order": 7}, type=PLACE)
    headers = wire.parse(connection.value('select headers from "Sales"'))
    address = f"/conversations/{headers[wire.CONVERSATION_ID]}/"
    sample()
    page = shown(looks, address)
    assert "One message waits in Sales" in text(page)
    assert re.match("PlaceOrder this message Web → Sales ready .* live queue$", lines(page)[0])

    for endpoint in (shop.sales, shop.billing, shop.loyalty):
        endpoint.start()
    until(lambda: count(connection, "error")() == 1 and count(connection, "Mails")() == 1)
    until(lambda: count(connection, "audit")() == 1)
    sample()
    assert "ChargeCard is dead in Billing; two messages wait in Mails and Shipping" in text(shown(looks, address))

    ingester.ingest(connection, ERRORS, limit=10)
    page = shown(looks, address)
    archive_id = connection.value("select id from messages.message_archive")
    assert f'href="/archive/{archive_id}/"' in page
    assert next(line for line in story(page) if "archived" in line).startswith("Dead: archived as")

    shop.gateway_is_down = False
    single.act("retry", archive_id, operator, "console", "gateway is back")
    until(lambda: count(connection, "audit")() == 3)
    page = shown(looks, f"{address}?m={archive_id}")
    assert [re.sub(r"\d+(\.\d)? m?s", "…", step) for step in story(page)] == [
        f"Sent by Sales to Billing audit queue from {HOST}, because of PlaceOrder, by its sender’s clock",
        f"Dead: archived as {archive_id} archive … later; GatewayTimeout, on {HOST}",
        "Retried by ana , operation 1 people … later; into Billing, “gateway is back”",
        f"Picked up by Billing on {HOST} audit queue … later",
        "Handled by Billing audit queue … later; it ran …",
    ]
    assert [re.sub(r"(\d+(\.\d)? m?s|–)( –)? ", "", line) for line in lines(page)] == [
        "PlaceOrder its story Web → Sales handled audit queue",
        "OrderPlaced its story · by what it sent , step 1 of causes Sales → Loyalty handled concluded",
        "SendMail its story , step 2 of causes Loyalty → Mails ready live queue",
        "OrderPlaced its story , step 1 of causes Sales → Shipping ready live queue",
        "ChargeCard this message · died once , step 1 of causes Sales → Billing handled audit queue archive",
        "CardCharged its story , step 2 of causes Billing → Sales handled audit queue",
    ]
    said = text(page)
    assert "5 messages, 6 copies, 6 endpoints" in said
    assert "what Loyalty did: no source has it" in said
    assert "of it dead" in said
    assert re.search(
        "live queue 2: all of \\d+ queues delayed 0: all of 6 delayed tables error queue 0: all of 1 error", said
    )
    drawn = matched(r'<svg class="f".*?aria-label="(.*?)"', page, re.DOTALL)
    assert "Sales published OrderPlaced to Shipping: 1 copy, waits" in drawn
    assert "Sales sent ChargeCard to Billing: 1 copy, died once" in drawn


RECORDED = "b9ab54e3-d051-4e99-a7cb-b508012119f7"  # one message died, some were audited, and one waits


def test_a_recorded_conversation_is_read_from_every_queue(looked_at: Recorded) -> None:
    sample()
    page = shown(looked_at.viewer, f"/conversations/{RECORDED}/")
    said = text(page)
    assert "ShipOrder is dead in Shipping; one message waits in Mailer" in said
    assert "8 messages, 13 copies, 6 endpoints" in said
    assert "live queue 1:" in said
    assert "audit queue 11:" in said
    assert "error queue 1: the newest 2,000 of error" in said
    assert "archive 0: by headers of the newest 10,000, and by what these name" in said
    assert "Open ShipOrder, dead in Shipping" in said
    assert len(lines(page)) == 13


def test_every_message_leads_to_its_conversation(looked_at: Recorded) -> None:
    archive_id = looked_at.dead(1, type="ShipOrder")[0]
    page = shown(looked_at.viewer, f"/archive/{archive_id}/")
    addresses = set(re.findall(r'href="(/conversations/[^"]*)"', page))
    (address,) = addresses
    assert address.endswith(f"?m={archive_id}")
    assert "Story of ShipOrder" in text(shown(looked_at.viewer, address))


def test_a_waiting_message_that_lies_behind_others_is_found_by_its_row(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = looked_at.connection.one('select id, headers from "Sales" order by seq limit 1')
    assert row is not None
    monkeypatch.setattr(conversations, "NEWEST", 1)
    conversation = wire.parse(row.headers)[wire.CONVERSATION_ID]
    page = shown(looked_at.viewer, f"/conversations/{conversation}/?m={row.id}")
    assert "waits in Sales" in text(page)
    assert "the newest 1 of" in text(page)
    assert f"/queues/public/Sales/messages/{row.id}/" in page


def test_an_id_that_nothing_has_says_what_was_looked_into(looked_at: Recorded) -> None:
    said = text(shown(looked_at.viewer, "/conversations/nobody's/"))
    assert "No source has a message of this conversation" in said
    assert "audit queue 0:" in said


def test_conversation_needs_a_sign_in(looked_at: Recorded) -> None:
    assert Client().get(f"/conversations/{RECORDED}/").status_code == 302
    assert looked_at.viewer.post(f"/conversations/{RECORDED}/").status_code == 405


@pytest.mark.parametrize(("module", "name"), [(archive, "numbers"), (archive, "read")])
def test_an_archive_that_does_not_answer_in_time_holds_nothing_up(
    looked_at: Recorded, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    def late(*_: object) -> None:
        raise TimedOut

    monkeypatch.setattr(module, name, late)
    said = text(shown(looked_at.viewer, f"/conversations/{RECORDED}/"))
    assert "audit queue 11:" in said
    assert "Messages may be missing. Not all of it could be read: archive" in said
    assert "headers were not read within 2 s" in said or "too slow and the statement was stopped" in said


def test_a_database_without_an_archive_says_so(console_database: str, connect: Connect, looks: Client) -> None:
    connection = connect(console_database)
    connection.run("drop schema messages cascade")
    TableQueue(postgresql(), Address("public", "Sales")).create(connection)
    put = 'insert into "Sales" (id, headers, body) values (gen_random_uuid(), %s, %s)'
    connection.run(put, [wire.dump({wire.CONVERSATION_ID: "c"}), b""])
    said = text(shown(looks, "/conversations/c/"))
    assert "One message waits in Sales" in said
    assert "archive not looked into: this database has none" in said


def test_a_database_that_is_down_is_said(looks: Client) -> None:
    with elsewhere("queues", PORT=1):
        page = looks.get("/conversations/c/")
    assert page.status_code == 200
    assert "does not answer" in page.content.decode()


def test_foreign_text_is_escaped(console_database: str, connect: Connect, looks: Client) -> None:
    connection = connect(console_database)
    TableQueue(postgresql(), Address("public", "Sales")).create(connection)
    markup, sneaky = '"><script>alert(1)</script>', "\u202egnp.exe"
    for number in range(300):
        headers = {
            wire.MESSAGE_ID: f"{number % 7}{markup}", wire.RELATED_TO: f"{(number + 1) % 9}{markup}",
            wire.CONVERSATION_ID: markup, wire.ORIGINATING_ENDPOINT: f"{sneaky}{markup}{number % 50}" * 30,
            wire.ORIGINATING_MACHINE: markup, wire.ENCLOSED_MESSAGE_TYPES: f"Shop.{markup}, A",
            wire.TIME_SENT: ["9999-12-31 23:59:59:999999 Z", "0001-01-01 00:00:00:000000 Z", "never"][number % 3],
            wire.FAILED_Q: f"{markup}@[public]" if number % 2 else None,
        }  # fmt: skip
        put = 'insert into "Sales" (id, headers, body) values (gen_random_uuid(), %s, %s)'
        connection.run(put, [wire.dump(headers), b""])
    page = shown(looks, f"/conversations/{quote(markup.replace('/', '~2F'), safe='')}/?m={quote(markup)}")
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert len(page) < 1_000_000


FACTS: dict[str, Any] = {"conversation_id": "c", "endpoint": "Sales", "type": "Shop.PlaceOrder"}


def test_history_is_looked_into_when_it_is_asked_for(history: Path, looks: Client, console_database: str) -> None:
    """A page with scripts loads it as a part of its own; without scripts, there is a link."""
    said = wire.dump({wire.CONVERSATION_ID: "c", wire.ORIGINATING_ENDPOINT: "Web", wire.RELATED_TO: "m-9"})
    times = {"sent_at": TEN - timedelta(seconds=3), "started_at": TEN - timedelta(seconds=1)}
    write(history, message(1, headers=said, **FACTS, **times), message(2, headers=said))
    first = shown(looks, "/conversations/c/")
    assert 'hx-get="?history=1"' in first
    assert "No source has a message" in first
    page = shown(looks, "/conversations/c/?history=1")
    assert "history-part" not in page
    assert "All that was found is over" in text(page)
    assert re.search("PlaceOrder this message .* Web → Sales handled 2.0 s 1.0 s history", text(page))
    assert "history 1: all files; 1 file in all" in text(page)


def test_files_that_cannot_be_read_are_told(history: Path, looks: Client, console_database: str) -> None:
    write(history, message(1, **FACTS)).write_bytes(b"no file of ours")
    assert "history not looked into: The files in" in text(shown(looks, "/conversations/c/?history=1"))


def test_a_page_asks_few_statements(looked_at: Recorded) -> None:
    """Counts statements on the console's own database; reads of queues have their own tests."""
    looked_at.viewer.get(f"/conversations/{RECORDED}/")
    with CaptureQueriesContext(django_connection) as asked:
        shown(looked_at.viewer, f"/conversations/{RECORDED}/")
    assert len(asked) <= 14
