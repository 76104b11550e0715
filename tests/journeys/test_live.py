"""Figures on an open page update by themselves, and the page says when they no longer can (C2)."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import emptied, sampled, shoot
from tests.journeys.product import Product
from tests.waiting import NOISE, until

pytestmark = pytest.mark.journey
SEVEN = """
insert into public."Shipping" (id, headers, body)
select gen_random_uuid(), '{"NServiceBus.EnclosedMessageTypes":"Shop.Ship"}', '{}' from generate_series(1, 7)
"""


def test_seven_rows_by_somebody_else_are_seen_within_two_seconds(page: Page, product: Product) -> None:
    emptied(product, "Shipping")  # another journey may have retried one of its dead messages
    page.goto(f"{product.url}/queues/public/Shipping/")
    ready = page.locator("dl.figs > div").filter(has_text=re.compile(r"^\s*Ready")).locator("dd.v")
    expect(ready).to_have_text("0")
    page.evaluate("window.notReloaded = true")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(SEVEN)
    expect(ready).to_have_text("7", timeout=2000 * NOISE)
    assert page.evaluate("window.notReloaded")


READ = """
insert into pgqueue_console.pgqueue_historysource
    ("table", cursor_kind, snapshot, snapshot_target, seq_done, open_transactions, cluster, blocked_reason,
        first_seen_at, "exists")
values ('"public"."Elsewhere"', 'numbers', '', '', 0, '{}', '', 'A transaction that writes to it is open.', now(), true)
"""

NEXT_IS_KEPT_BACK = """
() => new Promise((done) => document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "going-on") setTimeout(() => done(event.defaultPrevented));
}))
"""


def test_history_blocker_appears_without_a_reload_unless_paused(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/history/")
    page.evaluate("window.notReloaded = true")
    said = page.get_by_text("A transaction that writes to it is open.")
    button = page.get_by_role("button", name="Read now")
    button.focus()
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(READ)
        try:
            expect(said).to_be_visible(timeout=7000 * NOISE)
            expect(button).to_be_focused()
            page.keyboard.press(".")
        finally:
            connection.run(
                "delete from pgqueue_console.pgqueue_historysource where blocked_reason like 'A transaction%'"
            )
    assert page.evaluate(NEXT_IS_KEPT_BACK)
    expect(said).to_be_visible()
    page.keyboard.press(".")
    expect(said).to_have_count(0, timeout=7000 * NOISE)
    assert page.evaluate("window.notReloaded")


def test_paused_figures_stand_still_until_resumed(page: Page, product: Product, shop_web_is_empty: None) -> None:
    page.goto(f"{product.url}/queues/public/Shop.Web/")
    ready = page.locator("dl.figs > div").filter(has_text=re.compile(r"^\s*Ready")).locator("dd.v")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    page.keyboard.press(".")
    expect(page.locator("[data-live-word]")).to_have_text("Paused")
    before = ready.inner_text()
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(SEVEN.replace("Shipping", "Shop.Web"))
        until(lambda: sampled(connection, "Shop.Web") == 7, what="the sampler to see them")
    assert ready.inner_text() == before != "7"
    page.keyboard.press(".")
    expect(ready).to_have_text("7")


def test_keys_lead_around(page: Page, product: Product) -> None:
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url(f"{product.url}/queues/")
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Find a message by any id, or a queue")
    expect(box).to_be_focused()
    page.keyboard.type("Sal")
    expect(page.locator("#everywhere option[value=Sales]")).to_have_count(1)
    page.keyboard.type("es")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{product.url}/queues/public/Sales/")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keys on this page")).to_be_visible()
    shoot(page, "shortcuts")


def test_a_second_that_passes_lays_a_long_list_out_a_few_times(page: Page, product: Product) -> None:
    """Not once per age in it: a slow machine would do nothing else."""
    page.goto(f"{product.url}/queues/public/Sales/messages/")
    ages = page.locator('time[data-as="ago"]').count()
    assert ages > 90
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def layouts() -> int:
        return int(
            {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}["LayoutCount"]
        )

    before = layouts()
    for _ in range(3):
        was = page.locator("[data-clock]").inner_text()
        page.wait_for_function("(was) => document.querySelector('[data-clock]').textContent !== was", arg=was)
    assert layouts() - before < ages


# A followed log shows new lines at its end; a reader who has scrolled up is not moved.
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
