"""A log that is followed shows what is printed, from its end; whoever has scrolled up reads on undisturbed."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.product import Product
from tests.journeys.test_live import NEXT_IS_KEPT_BACK
from tests.waiting import NOISE

pytestmark = pytest.mark.journey
ONE = """select id, log from pgqueue_console.pgqueue_process
    where role = 'endpoint' and ended_at is null and log <> '' limit 1"""
AT_THE_END = "log => log.scrollTop > 0 && log.scrollTop + log.clientHeight > log.scrollHeight - 4"


def test_a_log_is_followed_from_its_end(page: Page, product: Product) -> None:
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        ((process, log),) = connection.all(ONE)
    printed(log, *(f"line {number}" for number in range(200)))
    page.goto(f"{product.url}/workers/{process}/log/?follow=1")
    assert page.locator(".log").evaluate(AT_THE_END)
    page.evaluate("window.notReloaded = true")
    printed(log, "the newest of all")
    newest = page.get_by_text("the newest of all")
    expect(newest).to_be_in_viewport(timeout=5000 * NOISE)
    assert page.locator(".log").evaluate(AT_THE_END)
    page.locator(".log").evaluate("log => { log.scrollTop = 0; }")
    assert page.evaluate(NEXT_IS_KEPT_BACK)
    page.get_by_role("link", name="Stand still").click()
    expect(page.get_by_role("link", name="Follow")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Whole file").click()
    assert "the newest of all" in Path(download.value.path()).read_text()


def printed(log: str, *lines: str) -> None:
    with Path(log).open("a") as file:
        file.writelines(f"{line}\n" for line in lines)
