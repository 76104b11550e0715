"""A running product and a real browser; a console error or a policy violation fails the journey."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import ports
from tests.journeys.product import ROOT, Product
from tests.waiting import PATIENCE, until

SHELL = shutil.which("chromium-headless-shell")  # without windows that nobody sees: less than half the work
CHROMIUM = os.environ.get("CHROMIUM") or SHELL or shutil.which("chromium") or "/usr/bin/chromium"
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
IN_README = {
    "overview",
    "overview-dark",
    "overview-phone",
    "queue",
    "message",
    "operation-preview",
    "operation",
    "warnings",
}
RECORDED_FAILURES = 2603
expect.set_options(timeout=PATIENCE * 1000)  # default 5 s; a busy machine may need more
SHOTS = ROOT / "docs" / "screenshots"


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    folder = Path(tempfile.mkdtemp(prefix="pgqueue-journey-"))
    folder.chmod(0o755)
    product = Product(folder / "var", ports.free())
    try:
        product.start()
        until(lambda: ready(product), 300, what="the first samples")
        yield product
    finally:
        product.stop(300)
        shutil.rmtree(folder, ignore_errors=True)


def ready(product: Product) -> bool:
    """Return whether every part is fresh and the recorded failures are archived."""
    with postgresql().connect(product.dsn, read_only=True, for_handlers=True) as connection:
        archived = connection.value("select count(*) from messages.message_archive")
    try:
        return bool(archived >= RECORDED_FAILURES and httpx.get(f"{product.url}/readyz").status_code == 200)
    except httpx.TransportError:
        return False


def sampled(connection: Connection, table: str) -> Any:
    """The ready messages at the last sample; None before the sampler has seen the queue."""
    asked = """select l.ready from pgqueue_console.pgqueue_latestsample l
        join pgqueue_console.pgqueue_queue q on q.id = l.queue_id
               where q.schema = 'public' and q."table" = %(table)s"""
    return connection.value(asked, {"table": table})


def under_way(product: Product) -> bool:
    """Return whether an operation is sending, into queues whose rows another journey counts."""
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        asked = "select exists (select from pgqueue_console.pgqueue_operation where state = 'running')"
        return bool(connection.value(asked))


@pytest.fixture
def shop_web_is_empty(product: Product) -> None:
    """Empty the queue, which has no receiver: leftovers of another journey form a pile, and a retry would wait."""
    emptied(product, "Shop.Web")


def emptied(product: Product, table: str) -> None:
    """Empty a queue without a receiver and wait until the sampler has seen it: pages show samples."""
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        connection.run(f'delete from public."{table}"')
        until(lambda: sampled(connection, table) == 0, what="the sampler to see that it is empty")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


class Complaints(list[str]):
    """Complaints of the browser about a page: script errors, blocked styles, missing files."""

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.append(str(error)))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.append(message.text)


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@contextmanager
def opened(browser: Browser, **about: Any) -> Iterator[BrowserContext]:
    """A browser context with the timeout of ``expect``; closed even if the journey fails."""
    context = browser.new_context(**about)
    context.set_default_timeout(PATIENCE * 1000)  # default 30 s
    try:
        yield context
    finally:
        context.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with opened(browser, viewport={"width": 1440, "height": 900}, timezone_id="UTC", locale="en-GB") as context:
        yield context


@pytest.fixture
def page(context: BrowserContext, product: Product, complaints: Complaints) -> Iterator[Page]:
    """A signed-in page on Overview."""
    page = context.new_page()
    complaints.watch(page)
    sign_in(page, product)
    yield page
    assert not complaints


def sign_in(page: Page, product: Product) -> None:
    """Sign in and open Overview.

    A page reuses the session of an earlier one until somebody signs out: checking a password takes a quarter of a
    second of CPU time, by design.
    """
    page.context.add_cookies(product.cookies)
    page.goto(f"{product.url}/")
    if page.url == f"{product.url}/":
        return
    name, password = product.login
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{product.url}/")
    product.cookies = [each for each in page.context.cookies() if each["name"].startswith(("sessionid", "csrftoken"))]


def shoot(page: Page, name: str) -> None:
    """Take a screenshot on request: ``SCREENSHOTS=1`` those of README, or a folder for all."""
    asked = os.environ.get("SCREENSHOTS", "")
    if asked == "1" and name in IN_README:
        page.screenshot(path=SHOTS / f"{name}.png")
    elif asked not in ("", "1"):
        Path(asked).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(asked) / f"{name}.png", full_page=True)
