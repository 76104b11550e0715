"""Reading, filtering, retrying one and many, and undoing a setting in a browser without scripts."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import opened, sign_in
from tests.journeys.product import Product
from tests.waiting import until

pytestmark = pytest.mark.journey


@pytest.fixture
def page(browser: Browser, product: Product) -> Iterator[Page]:
    with opened(browser, java_script_enabled=False) as context:
        page = context.new_page()
        sign_in(page, product)
        yield page


def test_single_message_is_retried_without_scripts(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead+error:Npgsql.PostgresException+queue:Billing")
    page.get_by_role("table").get_by_role("link", name="ChargeCard").first.click()
    page.wait_for_url(re.compile(r"/archive/\d+/"))
    page.get_by_role("button", name=re.compile("^Retry")).first.click()
    expect(page.get_by_text(re.compile("by admin")).first).to_be_visible()


def test_discarded_ones_are_restored(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead+error:System.OverflowException")
    boxes = page.get_by_role("row").get_by_role("checkbox")
    boxes.nth(1).check()
    boxes.nth(2).check()
    page.get_by_role("button", name=re.compile("^Discard")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(re.compile("Discard 2 messages .*demo"))
    with page.expect_navigation():  # a second request before the response would cancel the first
        page.get_by_role("button", name=re.compile("^Discard 2")).click()
    here = page.url

    def ended() -> bool:
        page.goto(here)
        return page.get_by_role("button", name=re.compile("^Restore all 2")).count() > 0

    until(ended, what="the operation to end")
    page.get_by_role("button", name=re.compile("^Restore all 2")).click()
    with page.expect_navigation():
        page.get_by_role("button", name=re.compile("^Restore 2")).click()
    here = page.url

    def restored() -> bool:
        page.goto(here)
        return page.get_by_text(re.compile("2 restored")).count() > 0

    until(restored, what="the restoring to end")


def test_a_peek_delay_is_changed_taken_and_undone(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/endpoints/Demo.Orders/?edit=1")
    delay = page.get_by_label(re.compile("[Pp]eek delay")).first
    delay.fill("0.9")
    page.get_by_role("button", name=re.compile("^(Save|Set|Change)")).first.click()
    value = page.get_by_role("row", name=re.compile("^Peek delay")).get_by_role("cell").first
    expect(value).to_have_text(re.compile("^\\s*900\\sms\\s*$"))
    page.get_by_role("button", name=re.compile("[Uu]ndo")).first.click()
    expect(value).to_have_text(re.compile("^\\s*1\\ss\\s*$"))
