"""Django admin under the console's policy: an action asks first, names count and queues, then does exactly that."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import under_way
from tests.journeys.product import Product
from tests.waiting import until

pytestmark = pytest.mark.journey


def test_dead_messages_are_retried_as_an_admin_action(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/admin/pgqueue/archivedmessage/?state=dead")
    # another journey expects a dead ShipOrder
    rows = page.locator("tr").filter(has=page.locator("input.action-select"), has_not_text="ShipOrder")
    boxes = rows.locator("input.action-select")
    boxes.nth(0).check()
    boxes.nth(1).check()
    page.get_by_label("Action:").select_option(label="Retry…")
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_text(re.compile("Retry 2 messages")).first).to_be_visible()
    expect(page.get_by_text("demo").first).to_be_visible()
    page.get_by_role("button", name="Retry 2").click()
    expect(page.locator(".messagelist")).to_contain_text(re.compile("operation", re.IGNORECASE))
    assert not page.locator(".messagelist .error").count()
    until(lambda: not under_way(product), what="its end: what it sends would be a surprise to other journeys")


def test_lists_show_all_their_columns(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/admin/")
    lists = page.locator("#content-main th a").evaluate_all("(links) => links.map((link) => link.href)")
    assert len(lists) > 10
    beyond = "(results) => results.map((each) => each.scrollWidth - each.clientWidth)"
    wide = []
    for each in lists:
        page.goto(each)
        wide += [(each, over) for over in page.locator(".results").evaluate_all(beyond) if over > 0]
    assert wide == []
