"""What somebody on call reads and searches first: piles, searches, removed queues, old deaths."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import httpx
import orjson
import pytest
from playwright.sync_api import Page, expect

from pgqueue_admin.alerts.dead_message_cursor import OLD_STOCK
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import HistoryBatch, HistorySource, Process, database_clock
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import wire_time
from tests.databases import Databases
from tests.journeys.conftest import Complaints
from tests.journeys.product import Product
from tests.said_times import SHORT
from tests.waiting import until

pytestmark = pytest.mark.journey
NEWSLETTER = '"public"."Newsletter"'  # a queue that no longer exists, with dead messages
AUDIT = '"public"."audit"'
Models = Callable[[Callable[[], object]], object]
BEGAN = """update pgqueue_cursor set position = position || jsonb_build_object('began', %s::text)
    where name = 'alerter' and position ? 'began' returning true"""
CONSOLE = "set search_path = pg_catalog, pgqueue_console"


@pytest.fixture
def rows(product: Product) -> Iterator[Connection]:
    """A session with the console's tables on its search path."""
    with postgresql().connect(product.dsn, for_handlers=True) as session:
        session.run(CONSOLE)
        yield session


@pytest.fixture
def only_newsletter_is_new(rows: Connection) -> Iterator[None]:
    """Every other open warning began a day earlier."""
    began = rows.all("select id, opened_at from pgqueue_alert where resolved_at is null")
    rows.run(
        "update pgqueue_alert set opened_at = case when queue = %s then now() else opened_at - interval '1 day' end"
        " where resolved_at is null",
        [NEWSLETTER],
    )
    yield
    for each in began:
        rows.run(
            "update pgqueue_alert set opened_at = %s, acknowledged_at = null, acknowledged_by = '' where id = %s",
            [each.opened_at, each.id],
        )


def test_the_new_stands_first_and_an_old_pile_turns_grey(
    page: Page, product: Product, only_newsletter_is_new: None
) -> None:
    page.goto(product.url)
    expect(page.locator("#v")).to_have_text(re.compile(rf"\d+ new since {SHORT}, \d+ older"))
    new, older = (page.get_by_role("list", name=name, exact=True) for name in ("Needs you now", "Older, open"))
    expect(new).to_contain_text("Newsletter")
    expect(older).not_to_contain_text("Newsletter")
    above, below = new.bounding_box(), older.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"]
    # a recorded queue, which does not change meanwhile
    pile = older.locator("[data-need]").filter(has=page.locator('.where a[href^="/queues/public/"]')).first
    key, name = pile.get_attribute("data-need"), pile.get_by_role("link").first.inner_text()
    pile.get_by_role("button", name="Acknowledge…").click()
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.locator(".notice[role=status]")).to_contain_text(re.compile("acknowledged", re.IGNORECASE))
    page.goto(product.url)
    expect(page.locator(f'[data-need="{key}"]')).to_have_count(0)
    grey = page.locator(".verdict .board li").filter(has=page.get_by_role("link", name=name, exact=True))
    expect(grey).to_contain_text("by admin")


def test_a_search_says_where_it_looked_and_the_finder_hands_its_text_on(
    page: Page, product: Product, rows: Connection, complaints: Complaints
) -> None:
    """The number is in bodies only: neither ``message:`` nor the finder claims that it is nowhere."""
    order, conversation = _carried(rows)
    page.goto(f"{product.url}/archive/?q=state:dead+message:{order}")
    expect(page.get_by_role("heading", name="No error's message has this")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text("Searched the whole archive")
    page.get_by_role("link", name="Search bodies for it").click()
    expect(page.locator("main")).to_contain_text(f"Looked for “{order}” in")
    expect(page.locator("tbody tr").first).to_be_visible()
    page.goto(f"{product.url}/messages/?q={order}")
    expect(page.get_by_text("Bodies: an order number in a body is not found by this box")).to_be_visible()
    page.get_by_role("link", name="Search the archive's texts for it").click()
    page.wait_for_url(re.compile("/archive/"))
    expect(page.get_by_label("Search the archive", exact=True)).to_have_value(re.compile(order))
    expect(page.locator("tbody tr").first).to_be_visible()
    page.goto(f"{product.url}/messages/?q={conversation}")
    expect(page.locator("main")).to_contain_text(re.compile(f"Conversation of \\d+ messages|{conversation}"))
    expect(page.locator("main")).not_to_contain_text("No message was found")
    complaints[:] = [text for text in complaints if "404" not in text]  # the 404 of an unknown id


def test_a_link_to_a_queue_that_is_gone_leads_to_its_dead(page: Page, product: Product, rows: Connection) -> None:
    page.goto(f"{product.url}/archive/?q=queue:Newsletter")
    page.locator("tbody").get_by_role("link", name="Newsletter").first.click()
    page.wait_for_url(re.compile("/queues/public/Newsletter/"))
    expect(page.locator("main")).to_contain_text(re.compile("This table is gone|No queue of this name"))
    dead = rows.value("select count(*) from messages.message_archive where state = 'dead' and queue = %s", [NEWSLETTER])
    page.locator("main").get_by_role("link", name=str(dead), exact=True).first.click()
    page.wait_for_url(re.compile("/archive/"))
    expect(page.locator("tbody tr")).to_have_count(dead)


@pytest.fixture
def models(product: Product, databases: Databases) -> Iterator[Models]:
    """``models(act)`` runs it on the product's own rows, in a thread without the browser's event loop."""
    with ThreadPoolExecutor(1) as thread, ExitStack() as stack:
        thread.submit(stack.enter_context, databases.as_django(product.dsn)).result()
        yield lambda act: thread.submit(act).result()
        thread.submit(stack.close).result()


def test_history_never_says_both_how_far_it_is_and_not_yet(page: Page, product: Product, models: Models) -> None:
    """Read by another process than the product, whose history is switched off."""
    main = page.locator("main")
    try:
        models(_first_batch)
        page.goto(f"{product.url}/history/")
        expect(page.locator("#read .notice")).to_have_count(1)
        expect(main).not_to_contain_text("complete up to")
        models(_batch_done)
        page.goto(f"{product.url}/history/")
        expect(main).to_contain_text(re.compile(rf"complete up to {SHORT} \((18|19)\smin(\s\d+\ss)? ago\)"))
        expect(main).not_to_contain_text("not yet")
    finally:
        models(_forget)


def _first_batch() -> None:
    now = database_clock.now()
    about = {"host": "elsewhere", "pid": 1, "start_ticks": 1, "started_at": now, "state": "running"}
    Process.objects.create(role="history", heartbeat_at=now + timedelta(minutes=10), **about)
    source = HistorySource.objects.create(table=AUDIT, cursor_kind="numbers", looked_at=now)
    lately = {"seq_lo": 1, "seq_hi": 9, "rows": 9, "seq_checksum": 45, "is_last": True}
    HistoryBatch.objects.create(
        source=source, state="running", started_at=now, watermark=now - timedelta(minutes=18), **lately
    )


def _batch_done() -> None:
    now = database_clock.now()
    HistoryBatch.objects.update(state="done", ended_at=now, kept=9)
    HistorySource.objects.update(watermark=now - timedelta(minutes=18))


def _forget() -> None:
    Process.objects.filter(host="elsewhere").delete()
    HistoryBatch.objects.all().delete()
    HistorySource.objects.all().delete()


def test_old_deaths_are_told_once_as_a_pile(page: Page, product: Product, rows: Connection) -> None:
    """Of two causes; the console was watching long before."""
    until(lambda: rows.value(BEGAN, [(datetime.now(UTC) - 2 * OLD_STOCK).isoformat()]), what="the alerter to begin")
    page.goto(f"{product.url}/alerts/?state=all")
    before = _taken_over(page)
    fail_long_ago(rows, "Shop.TakenOverOne", 3)
    fail_long_ago(rows, "Shop.TakenOverTwo", 2)
    until(lambda: page.reload() and _taken_over(page) == before + 5, 120, "the pile is told")
    for cause in ("TakenOverOne", "TakenOverTwo"):  # reported a moment after the pile
        until(lambda cause=cause: page.reload() and page.locator("tr", has_text=cause).count())  # type: ignore[misc]
        expect(page.locator("tr", has_text=cause)).to_contain_text("not mailed")
    page.goto(f"{product.url}/alerts/mail/")
    expect(page.locator("main")).not_to_contain_text("TakenOver")


def _taken_over(page: Page) -> int:
    """The sum over all piles: another error queue may have its own."""
    found = re.findall(r"([\d,]+)\sold deaths taken over from error", page.locator("main").inner_text())
    return sum(int(each.replace(",", "")) for each in found)


OTHERS = (
    *("/", "/queues/", "/alerts/", "/archive/", "/failures/", "/endpoints/"),
    *("/queues/demo/Demo.Billing/messages/", "/readyz"),
)


def test_locked_queue_leaves_other_pages_answering(page: Page, product: Product, rows: Connection) -> None:
    """Twelve requests wait for its messages; all other pages answer meanwhile."""
    cookies = {each["name"]: each["value"] for each in page.context.cookies()}

    def asked(path: str) -> httpx.Response:
        return httpx.get(f"{product.url}{path}", cookies=cookies, timeout=60)

    # another journey may have stopped the sampler or ended a process
    until(lambda: asked("/readyz").status_code == 200, what="all parts to be fresh")
    with ThreadPoolExecutor(12) as people, rows.transaction():
        rows.run('lock table public."Mailer" in access exclusive mode')
        waiting = [people.submit(asked, "/queues/public/Mailer/messages/") for _ in range(12)]
        others = {path: asked(path).status_code for path in OTHERS}
        answers = [each.result() for each in waiting]
    assert others == dict.fromkeys(OTHERS, 200)
    assert [each.status_code for each in answers] == [503] * 12
    assert all(re.search("busy", each.text, re.IGNORECASE) for each in answers)


def fail_long_ago(rows: Connection, cause: str, count: int) -> None:
    failed = {h.FAILED_Q: "Billing", h.TIME_OF_FAILURE: wire_time(datetime.now(UTC) - timedelta(days=5))}
    for _ in range(count):
        headers = orjson.dumps({**failed, h.MESSAGE_ID: str(uuid4()), h.EXCEPTION_TYPE: cause}).decode()
        message = {"id": uuid4(), "headers": headers, "body": b"{}", "ttbr_ms": None}
        rows.run(postgresql().queue.send(table=Address("public", "error")), message)


def _carried(rows: Connection) -> tuple[str, str]:
    """An order number in bodies of dead messages that no id contains, and the conversation of one of them."""
    asked = "select body, headers from messages.message_archive where state = 'dead' and queue like '%%Billing%%'"
    for row in rows.all(f"{asked} order by id"):
        try:
            order = orjson.loads(row.body)["OrderId"]
            return str(order), orjson.loads(row.headers)["NServiceBus.ConversationId"]
        except (ValueError, KeyError, TypeError):
            continue
    raise AssertionError("no dead message has an order")
