"""An operator views the lease queue, publishes, removes a lock, ends a message and retries it."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import ports
from pgqueue_admin.lease import LeaseQueue
from tests.journeys.conftest import Complaints, ready, shoot
from tests.journeys.product import Product
from tests.journeys.test_pages import AXE
from tests.waiting import until

pytestmark = pytest.mark.journey


@pytest.fixture(scope="module")
def product() -> Iterator[Product]:
    """A product that watches the lease queue."""
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-lease-"))
    folder.chmod(0o755)
    product = Product(folder / "var", ports.free(), PGQUEUE_QUEUE_SCHEMAS="public,Legacy,demo,messages")
    try:
        product.start()
        until(lambda: ready(product), 300, what="the first samples")
        yield product
    finally:
        product.stop(300)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def queue(product: Product) -> Iterator[LeaseQueue]:
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run("delete from messages.message")  # left by another journey
    queue = LeaseQueue(product.dsn, name="thumbs")
    yield queue
    queue.close()


def fill(queue: LeaseQueue) -> int:
    """Two locked messages, one for long; one released for later; two waiting; some ended."""
    queue.publish_many([{"kind": "render", "asset": f"sku/{number}.png", "width": 800} for number in range(12)])
    leases = queue.claim(12, lock_for=600)
    for place, lease in enumerate(leases):
        queue.finish(lease, ("success", "success", "success", "rejected", "failed")[place % 5], "no encoder")
    names = ("KETTLE-1L-BLUE", "GIFT-WRAP", "LAMP-ASH", "LAMP-OAK", "TEAPOT-RED")
    queue.publish_many([{"kind": "render", "asset": f"sku/{name}.png", "width": 1600} for name in names])
    long, short, later = queue.claim(3, lock_for=600)
    queue.renew(short, timedelta(minutes=5))
    queue.release(later, after=timedelta(minutes=20))
    return long.id


def test_from_a_stuck_lock_to_a_retry(page: Page, product: Product, queue: LeaseQueue, complaints: Complaints) -> None:
    stuck = fill(queue)
    page.goto(f"{product.url}/queues/?q=kind:lease")
    page.get_by_role("link", name="message", exact=True).click()
    figures = page.get_by_label("Now", exact=True)
    expect(figures).to_contain_text(re.compile(r"Waiting\s*2\s*counted"))
    expect(figures).to_contain_text(re.compile(r"Locked\s*2"))
    looked = page.locator("#ends-part")
    expect(looked).to_contain_text("sku/KETTLE-1L-BLUE.png")
    expect(looked).to_contain_text("How they ended")
    assert Axe().run(page, options=AXE).response["violations"] == []
    shoot(page, "lease-queue")
    page.emulate_media(color_scheme="dark")
    shoot(page, "lease-queue-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "lease-queue-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1440, "height": 900})

    page.get_by_role("link", name="Publish a test message…").click()
    page.get_by_label("Message, JSON").fill('{"kind": "render", "asset": }')
    page.get_by_role("button", name=re.compile("Publish 1 in")).click()
    expect(page.locator("#message-err")).to_contain_text("line 1, column 29")
    shoot(page, "lease-publish")
    assert [each for each in complaints if "422" not in each] == []
    complaints.clear()  # the answer to invalid JSON
    page.get_by_label("Message, JSON").fill('{"kind": "render", "asset": "sku/TEST.png"}')
    page.get_by_role("button", name=re.compile("Publish 1 in")).click()
    expect(page.get_by_text(re.compile("Published as message"))).to_be_visible()

    looked.get_by_role("link", name="render").nth(1).click()  # the later of the two locks
    expect(page.get_by_role("heading", level=1)).to_have_text("render")
    assert Axe().run(page, options=AXE).response["violations"] == []
    shoot(page, "lease-message")
    page.set_viewport_size({"width": 320, "height": 800})
    shoot(page, "lease-message-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.set_viewport_size({"width": 1440, "height": 900})
    page.locator("#release").get_by_label("Reason, kept in the audit").fill("its worker hangs")
    page.get_by_role("button", name=re.compile("Release")).click()
    expect(page.get_by_text(re.compile(f"The lock on message {stuck:,} is off"))).to_be_visible()

    page.get_by_role("link", name="See it", exact=True).click()
    page.get_by_label("Reason, kept in audit and archive").fill("poisoned")
    page.get_by_role("button", name=re.compile("End")).click()
    page.get_by_role("link", name="See it in the archive").click()
    expect(page.get_by_text("Ended by").first).to_be_visible()
    shoot(page, "lease-dead")
    with page.expect_navigation():
        page.get_by_role("button", name="Retry to message").click()
    page.goto(page.url)
    page.get_by_role("link", name=re.compile("^message [0-9]")).click()
    expect(page.get_by_text("Retry of")).to_be_visible()
    page.get_by_role("link", name="messages", exact=True).click()
    shoot(page, "lease-messages")
    assert Axe().run(page, options=AXE).response["violations"] == []


def test_ticked_locks_are_taken_off_at_phone_width(page: Page, product: Product, queue: LeaseQueue) -> None:
    """Two of three are ticked, confirmed and done; the third keeps its lock."""
    ids = queue.publish_many([{"kind": "ticked", "asset": f"sku/{number}.png"} for number in range(3)])
    until(lambda: queue.claim(100, lock_for=600) == [], 30, what="locks on all that wait")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{product.url}/queues/messages/message/messages/")
    rows = page.get_by_role("row").filter(has=page.get_by_role("link", name="ticked", exact=True))
    expect(rows).to_have_count(3)
    for place in (0, 1):
        rows.nth(place).get_by_role("checkbox").check()
    page.get_by_role("button", name=re.compile("^Release")).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Release the locks on 2 messages of message")
    assert Axe().run(page, options=AXE).response["violations"] == []
    shoot(page, "lease-ticked")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_label("Reason, kept in audit", exact=True).fill("a journey")
    page.get_by_role("button", name=re.compile("^Release 2")).click()
    expect(page.get_by_text("The locks on 2 messages are off")).to_be_visible()
    assert len({lease.id for lease in queue.claim(100, lock_for=600)} & set(ids)) == 2
