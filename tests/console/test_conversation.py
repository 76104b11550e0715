"""The story of a conversation, read line by line from what endpoints of ours really did."""

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from pgqueue_admin.archive import ingester
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.services import operations
from pgqueue_admin.transport import Endpoint, EndpointSettings, Handlers, MessageContext
from pgqueue_admin.transport.wire import headers as wire
from tests.console.pages import Connect, matched, shown
from tests.console.sampled import sample
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
    """Of the list, without times."""
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
    operations.act("retry", archive_id, operator, "console", "gateway is back")
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
