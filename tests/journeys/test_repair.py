"""The main job: a new user repairs a recorded NServiceBus failure in the browser (C4)."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from pgqueue_admin.demo import contracts
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire.headers import FAILURE_PREFIXES
from tests.journeys.conftest import shoot
from tests.journeys.product import Product
from tests.journeys.test_pages import overflow
from tests.waiting import until

pytestmark = pytest.mark.journey
BILLING = Address("public", "Billing")
MESSAGE = re.compile(r"/archive/\d+/")  # its page; the list before it has an act and ids of its own
REFUSED = "error:Shop.Billing.PaymentGateway+RefusedException"


def rows(product: Product, address: Address) -> list[Any]:
    table = f"{postgresql().canonical(address)}"
    with postgresql().connect(product.dsn, read_only=True, for_handlers=True) as connection:
        return connection.all(f"select id, expires, headers, seq from {table} order by seq")


def test_a_recorded_failure_is_retried_once_and_only_once(
    page: Page, context: BrowserContext, product: Product
) -> None:
    before = rows(product, BILLING)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Archive").click()
    page.get_by_label("Search the archive").fill(f"state:dead {REFUSED}")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Searched the whole archive")).to_be_visible()
    page.get_by_role("link", name="ChargeCard").first.click()
    page.wait_for_url(MESSAGE)
    message_id = page.locator("[data-copy]").first.get_attribute("data-copy")
    address = page.url
    second = context.new_page()
    second.goto(address)
    expect(page.locator("#error")).to_contain_text("RefusedException")
    shoot(page, "message")

    page.get_by_role("button", name=re.compile("^Retry")).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("ChargeCard")
    expect(page.get_by_text(re.compile("retried by admin|by admin")).first).to_be_visible()

    until(lambda: len(rows(product, BILLING)) == len(before) + 1, what="one more row in Billing")
    after = rows(product, BILLING)
    (new,) = [row for row in after if row.id not in {old.id for old in before}]
    headers = json.loads(new.headers)
    assert headers["NServiceBus.MessageId"] == message_id
    assert not [name for name in headers if name.startswith(tuple(FAILURE_PREFIXES))]
    assert new.expires is None

    # the other page follows: it shows the message's new state and offers no second retry
    expect(second.get_by_role("link", name="Load it again")).to_be_visible()
    expect(second.get_by_role("button", name=re.compile("^Retry"))).to_have_count(0)
    assert len(rows(product, BILLING)) == len(after)


def test_many_are_frozen_shown_and_then_retried(page: Page, product: Product) -> None:
    before = len(rows(product, BILLING))
    page.goto(f"{product.url}/archive/?q=state:dead+queue:Billing+error:TimeoutException")
    boxes = page.get_by_role("row").get_by_role("checkbox")
    for number in (1, 2, 3):
        boxes.nth(number).check()
    page.get_by_role("button", name=re.compile("^Retry")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Retry 3 messages .* in demo"))
    expect(page.get_by_text("nothing done yet").first).to_be_visible()
    assert len(rows(product, BILLING)) == before
    shoot(page, "operation-preview")
    page.get_by_role("button", name=re.compile("^Retry 3")).click()
    until(lambda: len(rows(product, BILLING)) == before + 3, what="three more rows")
    expect(page.get_by_text("ended").first).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="to go")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Cancel"))).to_have_count(0)
    assert overflow(page, 320) <= 0
    shoot(page, "operation")


def place_an_order_that_is_held(product: Product) -> None:
    """Send an order of its own: another journey may have repaired the shop's first, and the next is minutes away."""
    customer = Endpoint("Journey", product.dsn, send_only=True)
    order = {"order": "journey-1", "total": 9.90, "carrier": "Parcelways", "suspicious": True}
    customer.send(contracts.queue(contracts.BILLING), order, type=contracts.CHARGE_CARD)
    customer.stop()


def test_a_failure_of_the_demo_is_retried_all_the_way_to_succeeded(page: Page, product: Product) -> None:
    def dead() -> bool:
        page.goto(f"{product.url}/archive/?q=state:dead+queue:Demo.Billing")
        return page.get_by_role("table").count() > 0

    place_an_order_that_is_held(product)
    until(dead, 120, "a message of the demo to die")
    page.get_by_role("table").get_by_role("link").first.click()
    page.wait_for_url(MESSAGE)
    here = page.url
    page.get_by_role("button", name=re.compile("^Retry")).first.click()
    expect(page.get_by_text(re.compile("by admin")).first).to_be_visible()

    def succeeded() -> bool:
        page.goto(here)
        return page.locator(".head").get_by_text("succeeded").count() > 0

    until(succeeded, what="the retried message to be handled")
