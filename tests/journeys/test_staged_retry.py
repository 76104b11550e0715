"""A staged retry of many messages: planned, paused, sped up, cancelled, with its results read, also on a phone."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Complaints, shoot
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE, overflow, standing_still
from tests.waiting import until

pytestmark = pytest.mark.journey
AT_ONCE = re.compile(r"^Retry [\d,]+ in demo$")


def test_a_staged_retry_from_the_archive_to_its_outcomes(
    page: Page, product: Product, shop_web_is_empty: None, complaints: Complaints
) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead+queue:Shop.Web")
    page.get_by_role("checkbox").nth(1).check()
    page.get_by_label(re.compile("that match")).check()
    page.get_by_role("button", name=re.compile(r"^Retry \d+")).click()
    expect(page.get_by_role("heading", name="Plan")).to_be_visible()
    # until the sampler sees an empty queue, the page offers to wait for a receiver
    until(lambda: (page.reload(), page.get_by_role("button", name=AT_ONCE).is_visible())[1], what="an empty queue")
    expect(page.get_by_label("first", exact=True)).to_have_value("5")
    shoot(page, "retry-plan")
    assert Axe().run(page, options=AXE).response["violations"] == []
    assert overflow(page, 320) <= 0
    assert_acts_stand_below_their_set(page)
    page.get_by_role("link", name="All at 20/s").click()
    page.get_by_label(re.compile(r"^\d+ at$")).fill("fast")
    page.get_by_label(re.compile("while a target")).fill("")
    page.get_by_label("to start until somebody receives").uncheck()
    page.get_by_label("Reason").fill("it is back")
    page.get_by_role("button", name=re.compile(r"^Retry \d+")).first.click()
    expect(page.get_by_role("alert")).to_contain_text("“fast” is no rate")
    complaints.clear()  # the answer to an invalid plan
    page.get_by_label(re.compile(r"^\d+ at$")).fill("1 /s")
    page.get_by_role("button", name=re.compile(r"^Retry \d+")).first.click()

    expect(page.get_by_text(re.compile(r"[1-9]\d* of \d+ acted on"))).to_be_visible()
    shoot(page, "retry-plan-running")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".head")).to_contain_text("paused by admin")
    with standing_still(page):
        assert Axe().run(page, options=AXE).response["violations"] == []
    assert overflow(page, 320) <= 0
    page.get_by_label("Send the rest at").fill("2 /s")
    with page.expect_response(lambda answer: answer.url.endswith(f"{page.url.split('/')[-2]}/")):
        page.locator("h1").click()  # a self-refresh keeps what is typed
    page.get_by_role("button", name="Send the rest at this rate").click()
    expect(page.get_by_text("The rest goes at 2/s")).to_be_visible()
    page.get_by_role("button", name=re.compile("^Resume the remaining")).click()
    expect(page.locator(".head")).to_contain_text("running, 2/s")
    page.get_by_role("button", name=re.compile("^Cancel the remaining")).first.click()
    page.get_by_role("button", name=re.compile("^Cancel the remaining .* in demo")).click()
    expect(page.locator(".head")).to_contain_text("the rest cancelled; outcome of")
    page.get_by_role("link", name="list").nth(2).click()
    expect(page.locator("#outcome")).to_contain_text("sent, waiting")
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "retry-plan-phone")


def assert_acts_stand_below_their_set(page: Page) -> None:
    """On a phone too: the set is seen before its buttons."""
    before = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    meant = page.get_by_role("heading", name="Messages in the set").bounding_box()
    act = page.get_by_role("button", name=AT_ONCE).bounding_box()
    assert meant
    assert act
    assert meant["y"] + meant["height"] <= act["y"]
    assert before
    page.set_viewport_size(before)
