"""A session that ends while a page is open: the page says so, and a pressed act is not silently lost."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import Complaints
from tests.journeys.product import Product

pytestmark = pytest.mark.journey
NOTHING = re.compile("^Nothing was done: you had been signed out")


def test_the_page_says_it_and_is_come_back_to(page: Page, product: Product, complaints: Complaints) -> None:
    page.goto(f"{product.url}/archive/?q=state:dead type:RefundCard")
    page.locator("main tbody th a").first.click()
    page.wait_for_url("**/archive/*/**")
    here = page.url
    expect(page.locator("[data-live-word]")).to_have_text("Live")  # from then on it handles keys
    page.context.clear_cookies(name=re.compile("^sessionid_"))
    page.keyboard.press(".")
    page.keyboard.press(".")  # the stream reconnects
    expect(page.locator("[data-live-word]")).to_have_text("Signed out")
    expect(page.locator("#freshness")).to_contain_text("You are signed out. Reload to sign in")
    page.get_by_role("button", name=re.compile("^Retry")).first.click()
    expect(page.locator(".notice")).to_have_text(NOTHING)
    expect(page.get_by_label("Name")).to_be_focused()  # once the page is drawn; earlier keys are lost
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


def test_a_page_left_open_says_it_by_itself(page: Page, product: Product, complaints: Complaints) -> None:
    """Signed out in another tab; nobody touches this one."""
    page.goto(f"{product.url}/queues/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    other = page.context.new_page()
    other.goto(f"{product.url}/workers/")
    other.get_by_role("button", name="admin").click()
    other.get_by_role("button", name="Sign out").click()
    expect(page.locator("[data-live-word]")).to_have_text("Signed out")
    expect(page.locator("#freshness")).to_contain_text("You are signed out. Reload to sign in")
    expect(page.locator("#changed")).to_have_count(0)
    complaints.clear()  # the refused stream


def test_rights_that_were_taken_are_said_on_the_page(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/queues/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    changed = page.get_by_text("What you may do has changed since this page was opened;")
    with superuser_no_more(product):
        expect(changed).to_be_visible()
        page.get_by_role("link", name="Load it again").click()
        expect(page.locator("[data-live-word]")).to_have_text("Live")
        expect(changed).to_have_count(0)


@contextmanager
def superuser_no_more(product: Product) -> Iterator[None]:
    with postgresql().connect(product.dsn) as connection:
        connection.run("update pgqueue_console.auth_user set is_superuser = false where username = 'admin'")
        try:
            yield
        finally:
            connection.run("update pgqueue_console.auth_user set is_superuser = true where username = 'admin'")
