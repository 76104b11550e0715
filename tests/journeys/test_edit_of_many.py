"""Changing one header of many messages: chosen, previewed while typing and kept, by keyboard alone and on a phone."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Complaints
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE, SMALL, overflow

pytestmark = pytest.mark.journey


def test_from_ticks_to_a_retry_that_changes_one_header(page: Page, product: Product, complaints: Complaints) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead+queue:Billing")
    page.get_by_role("checkbox").nth(1).focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Edit and retry 1…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Change one thing in 1 message")).to_be_visible()
    expect(page.locator("#changes")).to_contain_text("Nothing yet")
    page.get_by_label(re.compile("^Name of the header")).focus()
    page.keyboard.type("Tenant")
    page.get_by_label("What becomes of it").select_option("add")
    page.get_by_label("New value").focus()
    page.keyboard.type("blue")
    expect(page.locator("#changes ins")).to_have_text("+ Tenant: blue")
    expect(page.get_by_label("New value")).to_have_value("blue")
    assert Axe().run(page, options=AXE).response["violations"] == []
    for width in (320, 390, 1440):
        assert overflow(page, width) <= 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(SMALL) == []
    page.get_by_label("New value").focus()
    page.get_by_role("button", name="Go on with this change…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("^Edit and retry 1 message to Billing in demo"))).to_be_visible()
    expect(page.locator("#edited")).to_contain_text("it sets header Tenant to “blue”")
    assert Axe().run(page, options=AXE).response["violations"] == []
    assert overflow(page, 320) <= 0
