"""Without a mouse: these journeys only press keys."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.product import Product
from tests.journeys.test_live_rules import OPEN
from tests.waiting import until

pytestmark = pytest.mark.journey
DEAD = "/archive/?q=state:dead"


def said(page: Page, what: str | re.Pattern[str]) -> None:
    """The notice of the act is shown and has the focus."""
    expect(page.locator(".notice[role=status]").filter(has_text=what)).to_be_focused()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_ticked_ones_are_frozen_without_walking_through_the_list(page: Page, product: Product) -> None:
    page.goto(f"{product.url}{DEAD}")
    press(page, "j", "x", "j", "j", "Shift+X")
    expect(page.locator("[data-selected]")).to_have_text("3 selected")
    press(page, "Escape")
    expect(page.locator("[data-selected]")).to_have_text("0 selected")
    press(page, "r")  # none is ticked: nothing happens
    press(page, "j", "x", "m")
    expect(page.locator("[data-selected]")).to_have_text(re.compile(r"All .+ that match"))
    press(page, "m", "r")
    asks = re.compile(r"^Retry 1 message .*\?$")
    expect(page.get_by_role("heading", level=1)).to_have_text(asks)
    page.get_by_label("Reason, kept in the audit").focus()
    page.keyboard.type("the reason is said")
    press(page, "Enter")  # pressed in a field, as people do: it starts nothing
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text(asks)


def test_a_question_holds_the_keys_until_it_is_answered(page: Page, product: Product) -> None:
    page.goto(f"{product.url}{DEAD}")
    press(page, "j", "Enter")
    page.wait_for_url("**/archive/*/**")
    asking, keep = page.locator("#discard"), page.get_by_role("button", name="Keep it")
    press(page, "d")
    expect(keep).to_be_focused()
    here = page.url
    press(page, "j", "k", "g", "w", "d")
    expect(keep).to_be_focused()
    for _ in range(3):
        press(page, "Tab")
    expect(keep).to_be_focused()
    press(page, "Shift+Tab")
    expect(page.get_by_label("Reason, kept in the audit")).to_be_focused()
    page.keyboard.type("just looking")
    press(page, "Enter")
    expect(asking).to_be_visible()
    press(page, "Escape")
    expect(asking).to_be_hidden()
    expect(page.get_by_role("button", name="Discard…")).to_be_focused()
    assert page.url == here


def test_the_list_of_keys_takes_focus_and_gives_it_back(page: Page, product: Product) -> None:
    page.goto(f"{product.url}{DEAD}")
    press(page, "j")
    row = page.locator("main tbody tr a").first
    expect(row).to_be_focused()
    press(page, "?")
    expect(page.locator("#shortcuts")).to_be_focused()
    press(page, "Escape")
    expect(page.locator("#shortcuts")).to_be_hidden()
    expect(row).to_be_focused()


def test_a_warning_is_acknowledged_from_the_list_and_taken_back(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/alerts/?by=list&q=queue:Sales")  # recorded warnings: none resolves meanwhile
    press(page, "a")  # no row is selected: nothing happens
    press(page, "j", "j")
    row = page.locator("main tbody tr").nth(1)
    about = row.locator('a[href^="/alerts/"]').get_attribute("href") or ""
    press(page, "?")
    expect(page.locator("#shortcuts")).to_contain_text("Acknowledge")
    press(page, "Escape", "a")
    expect(page.get_by_text("Shown grey; a mail is sent only when it ends.")).to_be_visible()
    expect(page.locator(f'main tbody a[href="{about}"]')).to_have_count(0)
    expect(page.locator("main tbody tr").nth(1).locator("a").first).to_be_focused()
    until(lambda: page.locator("#v").inner_text().startswith(f"{open_warnings(product)} open"), what="one less")
    page.goto(f"{product.url}{about}")
    press(page, "a")
    said(page, "Put back among the open warnings.")


def open_warnings(product: Product) -> int:
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        return int(connection.value(OPEN))


def test_a_message_is_discarded_restored_and_retried(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead type:RefundCard")
    press(page, "j", "Enter")
    page.wait_for_url("**/archive/*/**")
    press(page, "d", "Tab")
    expect(page.get_by_role("button", name="Discard it")).to_be_focused()
    press(page, "Enter")
    said(page, "1 message discarded.")
    press(page, "u")
    said(page, "1 message restored.")
    press(page, "?")
    expect(page.locator("#shortcuts")).to_contain_text("Retry to")
    press(page, "Escape", "r")
    said(page, re.compile("1 message retried|1 message sent"))


def test_a_peek_delay_is_set_and_taken_back(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/endpoints/Demo.Billing/")
    press(page, "e")
    page.wait_for_url("**edit=1**")
    field = page.get_by_label("Peek delay")
    tab_to(page, field)
    press(page, "Control+a")
    page.keyboard.type("2 s")
    press(page, "Enter")
    expect(page.locator(".notice[role=status]")).to_be_focused()
    expect(page.locator(".notice[role=status]")).to_contain_text("2")
    tab_to(page, page.get_by_role("button", name="Undo").first)
    press(page, "Enter")
    said(page, "Demo.Billing is back: peek delay")


def tab_to(page: Page, place: Locator) -> None:
    """Press Tab until it has the focus; more than 200 steps are too many for anybody."""
    for _ in range(200):
        press(page, "Tab")
        if place.evaluate("place => place === document.activeElement"):
            return
    raise AssertionError("it cannot be reached")
