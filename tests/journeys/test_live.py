"""Figures change on an open page by themselves, and say so when they no longer can (C2)."""

import re

import pytest
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import shoot
from tests.journeys.product import Product
from tests.waiting import NOISE

pytestmark = pytest.mark.journey
SEVEN = """
insert into public."Shipping" (id, headers, body)
select gen_random_uuid(), '{"NServiceBus.EnclosedMessageTypes":"Shop.Ship"}', '{}' from generate_series(1, 7)
"""


def test_seven_rows_by_somebody_else_are_seen_within_two_seconds(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/queues/public/Shipping/")
    ready = page.locator("dl.figs > div").filter(has_text=re.compile(r"^\s*Ready")).locator("dd.v")
    expect(ready).to_have_text("0")
    page.evaluate("window.notReloaded = true")
    expect(page.get_by_text("Live").first).to_be_visible()
    with postgresql().connect(product.dsn) as connection:
        connection.run(SEVEN)
    expect(ready).to_have_text("7", timeout=2000 * NOISE)
    assert page.evaluate("window.notReloaded")


def test_paused_figures_stand_still_until_resumed(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/queues/public/Shop.Web/")
    ready = page.locator("dl.figs > div").filter(has_text=re.compile(r"^\s*Ready")).locator("dd.v")
    before = ready.inner_text()
    page.keyboard.press(".")
    expect(page.get_by_text(re.compile("Paused")).first).to_be_visible()
    with postgresql().connect(product.dsn) as connection:
        connection.run(SEVEN.replace("Shipping", "Shop.Web"))
        told = "select pg_sleep(0) where exists (select from pgqueue_latestsample where ready >= 7)"
        connection.value(told)
    assert ready.inner_text() == before
    page.keyboard.press(".")
    expect(ready).to_have_text("7", timeout=4000 * NOISE)


def test_keys_lead_around(page: Page, product: Product) -> None:
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url(f"{product.url}/queues/")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox").first).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys on this page")).to_be_visible()
    shoot(page, "shortcuts")
