"""An evening with one endpoint stopped and one paused: the first line of every page, and the ways on from there."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import opened, shoot
from tests.journeys.product import Product
from tests.journeys.test_pages import WINDOWS, overflow
from tests.said_times import SHORT
from tests.waiting import until

pytestmark = pytest.mark.journey
LOOKS: dict[str, dict[str, Any]] = {**WINDOWS, "middle": {"viewport": {"width": 1024, "height": 800}}}
PLACES = {"": "/", "workers": "/workers/", "endpoints": "/endpoints/", "queues": "/queues/"}
STOPPED = re.compile(rf"Demo\.Orders is stopped \(by \w+, {SHORT}\); [\d,]+ waits?")


def press(page: Page, product: Product, endpoint: str, *buttons: str) -> None:
    page.goto(f"{product.url}/endpoints/{endpoint}/")
    for button in buttons:
        page.get_by_role("button", name=button, exact=True).first.click()
    expect(page.locator(".notice.good")).to_be_visible()  # leaving earlier would cancel the request


def order_waits(product: Product) -> bool:
    """Return whether an order waits that stays: price requests expire within seconds."""
    with postgresql().connect(product.dsn, read_only=True, for_handlers=True) as connection:
        asked = """select exists (select from demo."Demo.Orders" where expires is null)"""
        return bool(connection.value(asked))


@pytest.fixture
def no_dead_of_web(product: Product) -> Iterator[None]:
    """Switch off Web's dead target: dead messages of another journey would make it critical, paused or not."""
    aim = """update pgqueue_console.pgqueue_queue set target_dead = %s where "table" = 'Demo.Web'"""
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(aim, [None])
        yield
        connection.run(aim, [0])


@pytest.fixture
def incident(page: Page, product: Product, no_dead_of_web: None) -> Iterator[Page]:
    """Stop Orders while the shop still sends to it; then pause Web."""
    press(page, product, "Demo.Orders", "Stop…", "Stop it")
    until(lambda: order_waits(product), what="an order")
    page.goto(product.url)
    expect(page.locator("#v")).to_have_text(STOPPED)  # pushed to the open page, without a reload
    press(page, product, "Demo.Web", "Pause…", "Pause it")
    yield page
    for endpoint, button in (("Demo.Orders", "Start"), ("Demo.Web", "Resume")):
        page.goto(f"{product.url}/endpoints/{endpoint}/")
        if (left := page.get_by_role("button", name=button, exact=True)).count():
            left.first.click()
            expect(page.locator(".notice.good")).to_be_visible()  # a window closed during a response may hang


def test_the_cause_is_said_first_on_every_page_and_ends_there(
    incident: Page, product: Product, browser: Browser
) -> None:
    for look, window in LOOKS.items():
        signed_in = incident.context.storage_state()
        with opened(browser, **window, timezone_id="UTC", storage_state=signed_in) as context:
            page = context.new_page()
            for name, path in PLACES.items():
                page.goto(product.url + path)
                expect(page.locator("main")).to_contain_text(STOPPED)
                expect(page.locator("main")).to_contain_text("Demo.Web is paused (by ")
                assert overflow(page, page.viewport_size["width"] if page.viewport_size else 0) <= 0, (look, path)
                shoot(page, f"incident{'-' if name else ''}{name}-{look}")
    incident.goto(f"{product.url}/queues/demo/Demo.Web/")
    expect(incident.locator("#halted")).to_contain_text("Demo.Web is paused")
    expect(incident.locator('[data-live="now.state"]')).to_have_text("paused")
    incident.goto(f"{product.url}/queues/demo/Demo.Orders/")
    expect(incident.locator("#halted")).to_have_text(STOPPED, use_inner_text=True)
    incident.goto(product.url)
    first = incident.locator("[data-need]").first
    expect(first).to_contain_text("Demo.Orders is stopped")
    first.get_by_role("button", name="Start").click()
    expect(incident.locator("main")).to_contain_text("Demo.Orders starts")
    expect(incident.locator("#v")).not_to_contain_text("is stopped")


def test_queues_keeps_what_counts_at_1024_px(browser: Browser, product: Product, page: Page) -> None:
    page.set_viewport_size({"width": 1024, "height": 800})
    page.goto(f"{product.url}/queues/")
    inside = "(cell) => cell.getBoundingClientRect().right <= cell.closest('.scroll').getBoundingClientRect().right"
    for name in ("Ready", "Oldest", "Trend", "Dead", "Consumers"):
        head = page.get_by_role("columnheader", name=name, exact=True)
        expect(head).to_be_visible()
        assert head.evaluate(inside), f"{name} is cut off"
    for name in ("Seq span", "Expired", "Target"):
        expect(page.locator("th", has_text=name)).to_be_hidden()


def test_warnings_are_acknowledged_without_scrolling_sideways_at_1024_px(page: Page, product: Product) -> None:
    page.set_viewport_size({"width": 1024, "height": 800})
    page.goto(f"{product.url}/alerts/")
    acknowledge = page.get_by_role("button", name="Acknowledge", exact=True)
    expect(acknowledge.first).to_be_visible()
    inside = "(buttons) => buttons.every((each) => each.getBoundingClientRect().right <= innerWidth)"
    assert acknowledge.evaluate_all(inside)
    beyond = "(each) => each.scrollWidth - each.clientWidth"
    assert page.get_by_role("region", name="Open warnings, scrolls").evaluate(beyond) <= 0


def test_no_figure_prints_over_the_next_tile(page: Page, product: Product) -> None:
    """Messages older than the sampler's first look have a minimum age: the longest text that a tile shows."""
    page.goto(f"{product.url}/queues/public/Poison.OddValues/")
    oldest = page.locator('[data-live="now.oldest"]')
    expect(oldest).to_contain_text("at")
    beyond = "(each) => each.scrollWidth - each.clientWidth"
    for width in (1440, 1280, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        oldest.locator("b").evaluate("(each) => { each.textContent = each.dataset.about + '44\\u00a0min 40\\u00a0s' }")
        assert oldest.evaluate(beyond) <= 0, width
