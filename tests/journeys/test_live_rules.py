"""Live updates move nothing that a person uses: order, rows, selection, a hidden tab, old figures (CONSOLE 3.1)."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import sampled
from tests.journeys.product import Product
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.journey
SOON = PATIENCE * 1000  # milliseconds: for waits that the browser's own patience does not cover
SEND = """
insert into public."{}" (id, headers, body)
select gen_random_uuid(), '{{"NServiceBus.EnclosedMessageTypes":"Shop.Ship"}}', '{{}}' from generate_series(1, {})
"""
# what the stream has brought, whatever the page did with it
LISTEN = """
window.told = {};
document.addEventListener("pgqueue:figures", (event) => Object.assign(window.told, JSON.parse(event.detail)));
"""
LONGER = r"\d\d\s|\d+\smin"  # than ten seconds
OPEN = "select count(*) from pgqueue_console.pgqueue_alert where resolved_at is null and acknowledged_at is null"
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def database(product: Product) -> Iterator[Connection]:
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        yield connection


@pytest.fixture
def queue(database: Connection, request: pytest.FixtureRequest) -> Iterator[str]:
    """A queue of this test alone, found by the sampler."""
    with made(database, f"Rules.{request.node.name.removeprefix('test_')[:40]}", 3) as name:
        yield name


@contextmanager
def made(database: Connection, name: str, messages: int) -> Iterator[str]:
    database.run(f'create table public."{name}" (like public."Shipping" including all)')
    database.run(SEND.format(name, messages))
    try:
        until(lambda: sampled(database, name) == messages, what="the sampler to find it")
        yield name
    finally:
        database.run(f'drop table public."{name}"')


def row_of(page: Page, name: str) -> Locator:
    return page.locator("tr[data-row]").filter(has=page.get_by_role("link", name=name, exact=True))


def ready_of(row: Locator) -> Locator:
    return row.locator('[data-live$=".ready"]')


def told(page: Page, key: str, value: str) -> None:
    """Wait until the stream has sent this value."""
    page.wait_for_function("([key, value]) => window.told[key] === value", arg=[key, value], timeout=SOON)


def order(page: Page) -> list[str]:
    return [str(each) for each in page.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)")]


def test_the_order_is_frozen_until_a_person_sorts_again(
    page: Page, product: Product, database: Connection, queue: str
) -> None:
    """L2, with two queues that only this test sends to, beside the shop: a changed figure does not reorder rows."""
    calm = 'update pgqueue_console.pgqueue_queue set target_age_seconds = null where "table" like %(name)s'
    with made(database, f"{queue}.2", 5):
        database.run(calm, {"name": f"{queue}%"})
        page.goto(f"{product.url}/queues/?q={queue}")
        again = page.get_by_role("link", name="Order has changed. Sort again")
        expect(page.locator("[data-live-word]")).to_have_text("Live")
        first, second = before = order(page)
        for sent in ("503", "1,003"):
            database.run(SEND.format(queue, 500))
            expect(ready_of(row_of(page, queue))).to_have_text(sent)
            expect(again).to_be_hidden()
        database.run("update pgqueue_console.pgqueue_queue set target_depth = 1 where id = %(id)s", {"id": int(second)})
        expect(page.locator(f'tr[data-row="{second}"]')).to_have_class("crit")
        expect(again).to_be_visible()
        assert order(page) == before
        page.keyboard.press("n")
        expect(page.locator("tr[data-row]").first).to_have_attribute("data-row", second)
        expect(page.locator("tr[data-row]").nth(1)).to_have_attribute("data-row", first)
        expect(again).to_be_hidden()


def test_a_message_that_left_stays_as_a_row_that_says_so(
    page: Page, product: Product, database: Connection, queue: str
) -> None:
    """L4, and L3: new rows are offered, not inserted."""
    page.goto(f"{product.url}/queues/public/{queue}/messages/")
    rows, more = page.locator("tr[data-seq]"), page.get_by_role("link", name="More arrived since. Show them")
    expect(rows).to_have_count(3)
    database.run(f'delete from public."{queue}" where seq = (select min(seq) from public."{queue}")')
    expect(rows.nth(0).get_by_text("left since")).to_be_visible()
    expect(rows.nth(1).get_by_text("left since")).to_be_hidden()
    expect(rows).to_have_count(3)
    expect(more).to_be_hidden()
    database.run(SEND.format(queue, 1))
    expect(more).to_be_visible()
    expect(rows).to_have_count(3)
    left = rows.nth(0).get_attribute("data-seq") or ""
    more.click()
    expect(rows.nth(0)).not_to_have_attribute("data-seq", left)
    expect(rows).to_have_count(3)
    expect(page.get_by_text("left since").first).to_be_hidden()


def test_a_process_that_ended_stays_as_a_row_that_says_so(page: Page, product: Product, database: Connection) -> None:
    """L4, and L3: its row is no longer sent and would otherwise wait for its next start for ever."""
    asked = """select id, pid from pgqueue_console.pgqueue_process
        where endpoint = 'Demo.Web' and ended_at is null order by id desc limit 1"""
    found = until(lambda: database.one(asked), what="a process of Demo.Web")
    page.goto(f"{product.url}/workers/")
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    row, more = (
        page.locator(f"#process-{found.id}"),
        page.get_by_role("link", name="Other processes run now. Show them"),
    )
    expect(row.get_by_text("runs no more")).to_be_hidden()
    expect(more).to_be_hidden()
    os.kill(found.pid, signal.SIGKILL)
    expect(row.get_by_text("runs no more")).to_be_visible()
    expect(more).to_be_visible()
    expect(page.locator("#v")).to_contain_text(re.compile("processes run|keeps ending over"))  # as other tests left it
    more.click()
    expect(page.locator(f"#process-{found.id}")).to_have_count(0)
    expect(page.locator("[data-process]", has_text="Demo.Web")).to_have_count(1)


def test_resolved_need_stays_greyed_on_overview(page: Page, database: Connection) -> None:
    """L4 on Overview."""
    needs = page.locator("[data-need]")  # a recorded queue, which does not change
    one = needs.filter(has=page.locator('.where a[href^="/queues/public/"]')).first
    expect(one).to_be_visible()
    key = one.get_attribute("data-need")
    where = one.locator(".where").inner_text()
    count = needs.count()
    open_here = """update pgqueue_console.pgqueue_alert set acknowledged_at = {}, acknowledged_by = 'ana'
                   where queue = (select '"' || schema || '"."' || "table" || '"'
                                  from pgqueue_console.pgqueue_queue where id = {})"""
    assert key
    gone = page.locator(f'[data-need="{key}"]')
    said = gone.get_by_text("Solved")

    def acknowledged() -> bool:
        """Acknowledge all: another may open at any moment."""
        database.run(open_here.format("now()", int(key.removeprefix("q"))))
        database.notify("pgqueue_alert")
        with suppress(AssertionError):
            expect(said).to_be_visible(timeout=5_000)
        return said.is_visible()

    until(acknowledged, what="it to need nobody")
    expect(gone).to_contain_text(where)
    assert needs.count() >= count
    database.run(open_here.format("null", int(key.removeprefix("q"))))
    database.notify("pgqueue_alert")
    expect(said).to_be_hidden()


@contextmanager
def selected(page: Page, row: Locator) -> Iterator[None]:
    row.evaluate("row => getSelection().selectAllChildren(row)")
    yield
    page.evaluate("getSelection().removeAllRanges()")


@contextmanager
def pressed(page: Page, row: Locator) -> Iterator[None]:
    ready_of(row).hover()  # not on a link: releasing the button would follow it
    page.mouse.down()
    yield
    page.mouse.up()


@pytest.mark.parametrize("holding", [selected, pressed])
def test_hands_off_a_row_that_somebody_holds(
    page: Page, product: Product, database: Connection, queue: str, holding: Any
) -> None:
    """L5: the swap waits, and the newest value wins."""
    page.goto(f"{product.url}/queues/?sort=-ready&q={queue}")  # alone in the list: nothing else moves it away
    page.evaluate(LISTEN)
    row = row_of(page, queue)
    key = ready_of(row).get_attribute("data-live") or ""
    row.scroll_into_view_if_needed()
    with holding(page, row):
        for sent in ("10", "17"):
            database.run(SEND.format(queue, 7))
            told(page, key, sent)
        assert ready_of(row).inner_text() == "3"
    expect(ready_of(row)).to_have_text("17")


def test_a_hidden_tab_closes_its_stream_and_catches_up(
    page: Page, product: Product, database: Connection, queue: str
) -> None:
    """L8."""
    page.goto(f"{product.url}/queues/public/{queue}/")
    ready = page.locator('[data-live="now.ready"]').first
    expect(page.locator("[data-live-word]")).to_have_text("Live")
    page.evaluate(HIDE, True)
    expect(page.locator("#stream")).to_have_count(0)
    title = page.title()
    database.run(SEND.format(queue, 4))
    until(lambda: sampled(database, queue) == 7, what="the sampler to see them")
    assert (ready.inner_text(), page.title()) == ("3", title)
    page.evaluate(HIDE, False)
    expect(ready).to_have_text("7")
    expect(page.locator("#stream")).to_have_count(1)


@contextmanager
def no_samples(database: Connection) -> Iterator[None]:
    """Stop the sampler."""
    asked = """select pid from pgqueue_console.pgqueue_process
        where role = 'sampler' and ended_at is null order by id desc limit 1"""
    sampler = until(lambda: database.value(asked), what="the sampler")
    os.kill(sampler, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(sampler, signal.SIGCONT)


def test_old_figures_stay_and_say_how_old_they_are(
    page: Page, product: Product, database: Connection, queue: str
) -> None:
    """L6: known figures are never blanked, and their age starts when they were last seen."""
    page.goto(f"{product.url}/queues/public/{queue}/")
    ready, stale = page.locator('[data-live="now.ready"]').first, page.locator("#freshness")
    oldest, sampled_ago = page.locator("[data-since][data-target]").first, page.locator("[data-live-age]")
    expect(stale).to_be_hidden()
    with no_samples(database):
        expect(stale).to_be_visible()
        expect(stale).to_have_text(re.compile(r"Figures are from\s+\d\d:\d\d:\d\d"))
        expect(page.locator("body")).to_have_class(re.compile("figures-stale"))
        assert ready.inner_text() == "3"
        before = oldest.inner_text()
        for seconds in ("[5-9]", "[7-9]"):  # or later, if nobody looked in time
            expect(sampled_ago).to_have_text(re.compile(f"^({seconds}|{LONGER})"))
        assert oldest.inner_text() == before
        for word in ("Paused", "Live"):  # the reopened stream sends everything
            page.keyboard.press(".")
            expect(page.locator("[data-live-word]")).to_have_text(word)
        expect(sampled_ago).to_have_text(re.compile(f"^(9|{LONGER})"))
        assert oldest.inner_text() == before
    expect(stale).to_be_hidden()
    expect(page.locator("body")).not_to_have_class(re.compile("figures-stale"))


def test_verdict_and_warnings_update_without_the_sampler(page: Page, product: Product, database: Connection) -> None:
    """L6: the verdict, and a warning that opens, on Overview and on Warnings."""
    warnings, needs = page.context.new_page(), page.locator("[data-need]")
    warnings.goto(f"{product.url}/alerts/")
    for each in (page, warnings):
        expect(each.locator("[data-live-word]")).to_have_text("Live")
    with no_samples(database):
        expect(page.locator("#v")).to_contain_text("The console cannot see: no sample since")
        expect(page.locator(".verdict")).to_have_class("verdict blind")
        until(lambda: database.value(f"{OPEN} and kind = 'sampler_stale'") == 1, what="the warning to open")
        until(lambda: counted(warnings) == database.value(OPEN), what="the page of warnings to count it")
        expect(page.locator("body")).to_have_class(re.compile("figures-stale"))
        assert all(text.strip() for text in needs.all_inner_texts())
    expect(page.locator(".verdict")).not_to_have_class("verdict blind")


def counted(warnings: Page) -> int:
    return int(warnings.locator('[data-live="alerts.open"]').inner_text())
