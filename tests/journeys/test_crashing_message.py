"""A message that crashes its process: its page, the process's log, and moving it out without scripts."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import Complaints, opened, shoot, sign_in
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE, WINDOWS, overflow

pytestmark = pytest.mark.journey
HEADERS = '{"NServiceBus.EnclosedMessageTypes": "Shop.Billing.ChargeCard", "NServiceBus.MessageId": "deadly"}'
DEATH = """insert into pgqueue_console.pgqueue_inflightatcrash
  (endpoint, schema, "table", row_id, seq, message_id, message_type,
    received_at, died_at, host, pid, start_ticks, exit_code, how, others_in_flight)
values ('Demo.Billing', 'public', 'Billing', %(id)s, %(seq)s, 'deadly', 'Shop.Billing.ChargeCard',
    now() - interval '3 s', now(), 'app-1', %(pid)s, 1, -11, 'ended by SIGSEGV', 0)"""


@pytest.fixture
def session(product: Product) -> Iterator[Connection]:
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        yield connection


@pytest.fixture
def deadly(session: Connection) -> Iterator[UUID]:
    """A message in a queue without a receiver, recorded as having ended three processes."""
    row_id = uuid4()
    session.run('insert into "Billing" (id, headers, body) values (%s, %s, %s)', [row_id, HEADERS, b"{}"])
    seq = session.value('select seq from "Billing" where id = %s', [row_id])
    for pid in (1, 2, 3):
        session.run(DEATH, {"id": row_id, "seq": seq, "pid": pid})
    yield row_id
    session.run('delete from "Billing" where id = %s', [row_id])
    session.run("delete from pgqueue_console.pgqueue_inflightatcrash where row_id = %s", [row_id])


@pytest.mark.parametrize("look", WINDOWS)
def test_crashing_message_pages(
    look: str, browser: Browser, product: Product, deadly: UUID, complaints: Complaints
) -> None:
    addresses = {"crashing-message": f"/crashing-messages/{deadly}/", "workers-crashing": "/workers/"}
    with opened(browser, **WINDOWS[look], timezone_id="UTC", reduced_motion="reduce") as context:
        page = context.new_page()
        sign_in(page, product)
        complaints.watch(page)
        for name, address in addresses.items():
            page.goto(product.url + address)
            expect(page.get_by_text("3 deaths").first).to_be_visible()
            shoot(page, f"{name}-{look}")
            found = Axe().run(page, options=AXE)
            assert not found.response["violations"], found.generate_report()
            assert overflow(page, 320) <= 0
    assert not complaints


def test_a_processes_log(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/endpoints/Demo.Billing/")
    page.locator("#processes").get_by_role("link", name="log").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Log of Demo.Billing")
    found = Axe().run(page, options=AXE)
    assert not found.response["violations"], found.generate_report()


def test_enter_in_its_reason_moves_nothing(page: Page, product: Product, deadly: UUID) -> None:
    page.goto(f"{product.url}/crashing-messages/{deadly}/")
    page.get_by_label("Reason, kept in the audit").focus()
    page.keyboard.type("it segfaults")
    page.keyboard.press("Enter")
    page.reload()
    expect(page.get_by_text("ends its process")).to_be_visible()
    expect(page.get_by_role("button", name="Move it out")).to_be_visible()


def test_crashing_message_is_moved_out_without_scripts(
    browser: Browser, product: Product, deadly: UUID, session: Connection
) -> None:
    with opened(browser, java_script_enabled=False) as context:
        page = context.new_page()
        sign_in(page, product)
        page.goto(f"{product.url}/workers/")
        page.get_by_role("link", name="Move that message out…").first.click()
        page.get_by_label("Reason, kept in the audit").fill("it segfaults")
        page.get_by_role("button", name="Move it out").click()
        expect(page.get_by_text("Moved out of Billing. It is dead, in the archive")).to_be_visible()
        said = "Moved to the dead by admin, while it waited"
        for section in ("#what", "#log"):
            expect(page.locator(section).get_by_text(said, exact=True)).to_be_visible()
        assert session.value('select count(*) from "Billing" where id = %s', [deadly]) == 0
        page.goto(f"{product.url}/workers/")
        expect(page.get_by_role("link", name="Move that message out…")).to_have_count(0)
