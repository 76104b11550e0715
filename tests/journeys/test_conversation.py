"""A conversation shows history's files after the rest, by a script or a link; the rest is shown at once."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import Complaints, opened, sign_in
from tests.journeys.product import Product

pytestmark = pytest.mark.journey

ADDRESS = "/conversations/b9ab54e3-d051-4e99-a7cb-b508012119f7/"
A_FILE = """
insert into pgqueue_console.pgqueue_datafile (dataset, path, day, rows, bytes)
values ('history', 'v3/nowhere.parquet', current_date, 1, 1)
"""
UNREADABLE = re.compile("not looked into: The files in .* cannot be read from here")
HEADLINE = "ShipOrder is dead in Shipping"


@pytest.fixture
def with_history(product: Product) -> Iterator[None]:
    """A history file in the manifest that does not exist on disk."""
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(A_FILE)
        yield
        connection.run("delete from pgqueue_console.pgqueue_datafile where path = 'v3/nowhere.parquet'")


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
def reader(request: pytest.FixtureRequest, browser: Browser, product: Product) -> Iterator[tuple[Page, bool]]:
    with opened(browser, java_script_enabled=request.param) as context:
        page = context.new_page()
        sign_in(page, product)
        yield page, request.param


def test_history_comes_after_the_rest(reader: tuple[Page, bool], with_history: None, product: Product) -> None:
    page, scripts = reader
    page.goto(product.url + ADDRESS)
    expect(page.get_by_role("heading", level=1)).to_contain_text(HEADLINE)
    if scripts:
        page.evaluate("window.notReloaded = true")
    else:
        page.get_by_role("link", name="Look into the files of history, too").click()
    expect(page.get_by_text(UNREADABLE)).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_contain_text(HEADLINE)
    expect(page.locator("#history-part")).to_have_count(0)
    expect(page.get_by_role("row", name=re.compile("ShipOrder"))).to_be_visible()
    if scripts:
        assert page.evaluate("window.notReloaded")


def test_a_part_that_does_not_come_is_said_in_its_place(
    page: Page, with_history: None, product: Product, complaints: Complaints
) -> None:
    page.route("**/*history=1", lambda route: route.abort())
    page.goto(product.url + ADDRESS)
    expect(page.get_by_text("This part could not be loaded.")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_contain_text(HEADLINE)
    complaints.clear()  # the failed load


def test_from_a_dead_message_to_its_conversation_and_back(page: Page, product: Product) -> None:
    page.goto(product.url + ADDRESS)
    page.get_by_role("link", name=re.compile("Open ShipOrder, dead in Shipping")).click()
    page.get_by_role("link", name="Story of the conversation").click()
    expect(page.get_by_role("heading", name="Story of ShipOrder")).to_be_visible()
    page.get_by_role("row", name=re.compile("ChargeCard")).get_by_role("link", name="its story").click()
    expect(page.get_by_role("heading", name="Story of ChargeCard")).to_be_visible()
