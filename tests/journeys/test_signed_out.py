"""A sign-in that ends while a page is open: the page says so, and what was pressed is not lost out of sight."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Complaints
from tests.journeys.product import Product

pytestmark = pytest.mark.journey
NOTHING = re.compile("^Nothing was done: you had been signed out")


def test_the_page_says_it_and_is_come_back_to(page: Page, product: Product, complaints: Complaints) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead")
    page.locator("main tbody th a").first.click()
    here = page.url
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press(".")
    page.keyboard.press(".")  # the stream is asked for again
    expect(page.locator("[data-live-word]")).to_have_text("Signed out")
    expect(page.locator("#freshness")).to_contain_text("You are signed out. Reload to sign in")
    page.get_by_role("button", name=re.compile("^Retry")).first.click()
    expect(page.locator(".notice")).to_have_text(NOTHING)
    name, password = product.login
    page.keyboard.type(name)
    page.keyboard.press("Tab")
    page.keyboard.type(password)
    page.keyboard.press("Enter")
    page.wait_for_url(here)
    expect(page.get_by_text(NOTHING)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Retry")).first).to_be_visible()
    assert all("401" in each or each == "[object Event]" for each in complaints), complaints
    complaints.clear()
