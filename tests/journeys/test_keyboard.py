"""Without a mouse: nothing here is pressed but keys."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.product import Product

pytestmark = pytest.mark.journey
DEAD = "/archive/?q=state:dead"


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
    press(page, "Enter")  # as people do in a field: it starts nothing
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
