"""Taking messages out of a queue with other receivers: switched on, ticked, confirmed, done, found in the bin."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import opened, shoot, sign_in
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE, overflow

pytestmark = pytest.mark.journey


@pytest.mark.parametrize("scripts", [False, True])
def test_ticked_ones_are_discarded_and_lie_in_the_bin(browser: Browser, product: Product, scripts: bool) -> None:
    with opened(browser, java_script_enabled=scripts, viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        sign_in(page, product)
        page.goto(f"{product.url}/settings/queues/public/Mailer/")
        page.get_by_label("Acts on messages that wait here").check()
        with page.expect_navigation():
            page.get_by_role("button", name="Save").click()
        page.goto(f"{product.url}/queues/public/Mailer/messages/")
        boxes = page.get_by_role("row").get_by_role("checkbox", name=re.compile("^Select [0-9a-f]"))
        boxes.nth(0).check()
        boxes.nth(1).check()
        page.get_by_role("button", name=re.compile("^Discard")).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Discard 2 messages of Mailer in demo?")
        if scripts:
            well_made(page, "waiting-acts")
        page.get_by_label("Reason, kept in the audit").fill("a journey")
        page.get_by_role("button", name="Discard 2", exact=True).click()
        expect(page.get_by_text("2 messages discarded from Mailer.")).to_be_visible()
        page.get_by_role("link", name="See the bin").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Bin")
        expect(page.get_by_text("a journey").first).to_be_visible()
        if scripts:
            well_made(page, "bin-filled")


def well_made(page: Page, name: str) -> None:
    shoot(page, name)
    found = Axe().run(page, options=AXE)
    assert not found.response["violations"], found.generate_report()
    assert overflow(page, 320) <= 0
