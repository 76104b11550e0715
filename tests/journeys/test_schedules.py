"""A user writes a schedule, sees its faults, saves it, and it is sent (L9)."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import Complaints, shoot
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE
from tests.waiting import until

pytestmark = pytest.mark.journey


def test_a_schedule_from_the_first_letter_to_its_message(page: Page, product: Product, complaints: Complaints) -> None:
    page.get_by_role("link", name="Schedules").click()
    shoot(page, "schedules-empty")
    page.get_by_role("link", name="New schedule…").first.click()
    page.get_by_label("Name", exact=True).fill("Every minute")
    page.get_by_label("minute").fill("*")
    page.get_by_label("hour").fill("*")
    page.get_by_label("Zone").fill("Europe/Vienna")
    expect(page.locator("#preview")).to_contain_text("Every minute, in Europe/Vienna.")
    page.get_by_label("weekday").fill("1-9")
    expect(page.locator("#preview")).to_contain_text("weekday 1-9 cannot be read")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#wrong")).to_contain_text("0 or 7 is Sunday")
    expect(page.get_by_label("weekday")).to_be_focused()
    shoot(page, "schedule-wrong")
    assert [each for each in complaints if "422" not in each] == []
    complaints.clear()  # the answer to an invalid schedule
    page.get_by_label("weekday").fill("*")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name=re.compile("Every minute"))
    expect(row).to_contain_text("lease queue")
    with postgresql().connect(product.dsn, for_handlers=True) as look:
        sent = "select count(*) from messages.schedule_run where outcome = 'sent'"
        until(lambda: look.value(sent), seconds=130, what="the supervisor or beat sends it")
        assert look.value("select count(*) from messages.message") >= 1
    page.reload()
    expect(row).to_contain_text("waits")
    row.get_by_role("button", name=re.compile("Run now")).click()
    with page.expect_navigation():  # until it loads, the old page gets the update too
        page.get_by_role("button", name="Run once now").click()
    expect(row).to_contain_text("by ")
    with page.expect_navigation():
        row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused by")
    shoot(page, "schedules")
    assert Axe().run(page, options=AXE).response["violations"] == []
    row.get_by_role("link", name="Every minute").click()
    expect(page.get_by_role("heading", name="Last five")).to_be_visible()
    shoot(page, "schedule")
    assert Axe().run(page, options=AXE).response["violations"] == []
    page.set_viewport_size({"width": 320, "height": 800})
    shoot(page, "schedule-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.get_by_role("button", name="Remove…").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("heading", name="No schedule yet")).to_be_visible()
    shoot(page, "schedules-phone")
