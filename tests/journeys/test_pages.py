"""Every page in a browser: light, dark and on a phone; accessible, under its policy, never wider than the window."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.journeys.conftest import Complaints, opened, shoot, sign_in
from tests.journeys.product import Product

pytestmark = pytest.mark.journey
PAGES = {
    "overview": "/",
    "warnings": "/alerts/",
    "queues": "/queues/",
    "queue": "/queues/public/Sales/",
    "queue-quoted": "/queues/public/Za%C5%BC%C3%B3%C5%82%C4%87%20%22g%C4%99%C5%9Bl%C4%85%22%20queue/",
    "queue-demo": "/queues/demo/Demo.Billing/",
    "messages": "/queues/public/Sales/messages/",
    "queue-send": "/queues/public/Sales/send/",
    "delayed": "/delayed/",
    "delayed-messages": "/queues/public/Sales.Delayed/messages/",
    "subscriptions": "/subscriptions/",
    "subscriptions-matrix": "/subscriptions/?as=matrix",
    "failures": "/failures/",
    "failures-by-type": "/failures/?by=type",
    "archive": "/archive/",
    "edit": "/archive/1/edit/",
    "conversation": "/conversations/48f54198-cd29-44aa-867a-b50801211a1f/",
    "conversation-dead": "/conversations/b9ab54e3-d051-4e99-a7cb-b508012119f7/",
    "conversation-nothing": "/conversations/nobody/",
    "operations": "/operations/",
    "endpoints": "/endpoints/",
    "endpoint": "/endpoints/Demo.Billing/",
    "workers": "/workers/",
    "trends": "/trends/",
    "history-messages": "/trends/messages/?w=90d",
    "history-nothing": "/trends/messages/?type=Shop.Nothing",
    "history": "/history/",
    "history-days": "/history/days/?since=2020-01-01&until=2099-12-31",
    "audit": "/audit/",
    "failures-chosen": "/failures/chosen/",
    "person": "/me/",
    "bin": "/bin/",
    "schedules": "/schedules/",
    "schedule-new": "/schedules/new/",
    "outboxes": "/outbox/",
    "settings": "/settings/",
    "mail": "/alerts/mail/",
    "finder": "/messages/00000000-0000-0000-0000-000000000000/",
    "archive-nothing": "/archive/?q=state:dead+queue:Nowhere",
    "archive-wrong": "/archive/?q=state:dead+age:%3E1hh+-type:Ping",
    "archive-texts": "/archive/?q=OrderId+-type:Nothing",
    "archived": "/archive/1/",
    "copy": "/archive/1/copy/",
    "failure": "/failures/<first>/",
    "trial-new": "/trials/new/?q=state:dead",
    "crossings": "/operations/crossings/",
    "unwatched": "/queues/unwatched/",
    "views": "/views/",
    "scopes": "/settings/scopes/",
    "masking": "/settings/masking/",
    "retry-rules": "/settings/retry-rules/",
}
ALIKE = {"exclude": [["tbody tr:nth-child(n+12)"]]}  # of a hundred rows the first represent all
AXE: dict[str, Any] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}
# rules that may differ from the light look: contrast, and on a phone touch targets
RULES: dict[str, dict[str, Any]] = {
    "light": AXE,
    "dark": {**AXE, "runOnly": {"type": "rule", "values": ["color-contrast"]}},
    "phone": {
        **AXE,
        "runOnly": {"type": "rule", "values": ["color-contrast", "target-size", "scrollable-region-focusable"]},
    },
}
# elements that follow the window's size are redrawn in the next frame
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
# touch targets below 24 px either way; links within a line of text are exempt (WCAG 2.5.8)
SMALL = """() => [...document.querySelectorAll("a, button, summary, select, textarea, input:not([type=hidden])")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest(".vh, .skip")
    && !(each.matches("a") && getComputedStyle(each).display === "inline"))
  .map((each) => [each.innerText || each.name || each.className, each.getBoundingClientRect()])
  .filter(([, box]) => box.width > 0 && (box.width < 23.5 || box.height < 23.5))
  .map(([name, box]) => `${name.trim()}: ${Math.round(box.width)} x ${Math.round(box.height)}`)"""
# text that is cut off or overlaps its neighbour; names that end in … do so by design, and have a title
CUT = """() => [...document.querySelectorAll("body *")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest(".vh, .skip, svg, [hidden]")
    && each.textContent.trim() && each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1)
  .map((each) => [each, getComputedStyle(each)])
  .filter(([, style]) => style.display !== "inline" && style.textOverflow !== "ellipsis"
    && !["auto", "scroll"].includes(style.overflowX))
  .map(([each]) => `${each.tagName}.${each.className}: ${each.textContent.trim().slice(0, 60)}`)"""
# status tags that are visible only after scrolling their table sideways
ASIDE = """() => [...document.querySelectorAll(".scroll .tag")]
  .filter((each) => each.checkVisibility({ visibilityProperty: true })
    && each.getBoundingClientRect().right > each.closest(".scroll").getBoundingClientRect().right)
  .map((each) => `${each.textContent.trim()} is out of sight`)"""
# plain words broken across lines; in code and long names the browser may break any
BROKEN = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [], word = document.createRange();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const around = text.parentElement;
    if (around.closest(".vh, svg, [hidden], pre, code, .mono, .trace, textarea, option")) continue;
    if (!around.checkVisibility({ visibilityProperty: true })) continue;
    for (const { 0: said, index } of text.data.matchAll(/(?<![^\\s(])[A-Za-z][a-z]{2,12}(?![^\\s,.;:)])/g)) {
      word.setStart(text, index);
      word.setEnd(text, index + said.length);
      const lines = new Set([...word.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) found.push(`${said} in ${around.tagName}.${around.className}`);
    }
  }
  return found;
}"""
# a label whose baseline differs from that of its value; an empty box in each marks the baseline
ASKEW = """() => {
  const baseline = (place) => {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    let text = walker.nextNode();
    while (!text.data.trim() || !text.parentElement.checkVisibility()) text = walker.nextNode();
    const mark = document.createElement("span");
    mark.style.display = "inline-block";
    text.before(mark);
    const { bottom } = mark.getBoundingClientRect();
    mark.remove();
    return bottom;
  };
  return [...document.querySelectorAll("main dl dt")].map((label) => [label, label.nextElementSibling])
    .filter(([label, said]) => said && said.matches("dd") && !label.closest(".vh")
      && [label, said].every((each) => each.checkVisibility({ visibilityProperty: true }) && each.innerText.trim())
      && said.getBoundingClientRect().left >= label.getBoundingClientRect().right - 1)
    .map(([label, said]) => [label, baseline(said) - baseline(label)])
    .filter(([, apart]) => Math.abs(apart) > 1.5)
    .map(([label, apart]) => `${label.innerText.trim()} stands ${apart.toFixed(1)} px off its value`);
}"""
WINDOWS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
}


@pytest.fixture(scope="module", params=WINDOWS)
def window(request: pytest.FixtureRequest, browser: Browser, product: Product) -> Iterator[tuple[str, Page]]:
    with opened(browser, **WINDOWS[request.param], timezone_id="UTC", reduced_motion="reduce") as context:
        page = context.new_page()
        sign_in(page, product)
        yield request.param, page


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, window: tuple[str, Page], product: Product, complaints: Complaints) -> None:
    look, page = window
    complaints.watch(page)
    page.goto(product.url + _address(page, product, name))
    page.wait_for_load_state("load")
    expect(page.locator(".frame-bar .env")).to_contain_text("demo")
    shoot(page, name if look == "light" else f"{name}-{look}")
    with standing_still(page):
        found = Axe().run(page, ALIKE, RULES[look])
    assert not found.response["violations"], found.generate_report()
    if look == "phone":
        assert page.evaluate(SMALL) == []
        assert page.evaluate(ASKEW) == []
    if look == "phone":
        assert cut(page, 390) == []
    elif look == "light":
        assert cut(page, 1024) == []
    for width in () if look == "dark" else (320, page.viewport_size["width"] if page.viewport_size else 0):
        assert overflow(page, width) <= 0, f"{name} scrolls sideways at {width} px"
    expected = ["404"] if name == "finder" else []
    assert [text for text in complaints if not any(code in text for code in expected)] == []


@contextmanager
def standing_still(page: Page) -> Iterator[None]:
    """Pause self-refresh for axe, which styles elements briefly: the policy forbids a refresh to copy such styles."""
    page.evaluate("sessionStorage.setItem('paused', 'yes')")  # static/pgqueue_admin/self_refresh.js
    yield
    page.evaluate("sessionStorage.removeItem('paused')")


def _address(page: Page, product: Product, name: str) -> str:
    if "<first>" not in PAGES[name]:
        return PAGES[name]
    page.goto(f"{product.url}/failures/")
    return str(page.locator("tbody a[href^='/failures/']").first.get_attribute("href"))


def overflow(page: Page, width: int) -> int:
    height = page.viewport_size["height"] if page.viewport_size else 900
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(DRAWN)
    beyond: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if before:
        page.set_viewport_size(before)
    return beyond


def cut(page: Page, width: int) -> list[str]:
    """Pills, cells, labels and other elements whose text is not fully visible in a window of this width."""
    before = page.viewport_size
    page.set_viewport_size({"width": width, "height": 844})
    page.evaluate(DRAWN)
    found: list[str] = [said for each in (CUT, ASIDE, BROKEN) for said in page.evaluate(each)]
    if before:
        page.set_viewport_size(before)
    return found


ALL_BUSY = """() => {
  const places = document.querySelectorAll('[data-live$=".busy"] .sub');
  for (const place of places) place.textContent = "100% of the last minute";
}"""
# the states of the figures in the top bar, including the text before the stream opens
STATES = ("Live", "As of 12:50", "Cut off", "Paused", "Signed out")
SAYS = """([environment, state]) => {
  document.querySelector(".env").lastChild.textContent = environment;
  document.querySelector("[data-live-word]").textContent = state;
}"""


def test_the_bar_fits_a_phone_whatever_it_says(browser: Browser, product: Product) -> None:
    with opened(browser, **WINDOWS["phone"], timezone_id="UTC") as context:
        page = context.new_page()
        sign_in(page, product)
        page.route("**/console*.js", lambda route: route.abort())  # it would overwrite the text each second
        page.goto(f"{product.url}/queues/")
        wide = []
        for environment in ("demo", "staging", "production"):
            for state in STATES:
                page.evaluate(SAYS, [environment, state])
                wide += [(environment, state, width) for width in (320, 390, 412) if overflow(page, width) > 0]
    assert wide == []


# the text of a search that stopped before its end, as on a slow machine
LED_ON = """() => document.querySelector(".covered").append(
  ...["Search the next 50,000 messages of it", "Narrow by queue, type, error, endpoint, state"].map((said) => {
    const link = Object.assign(document.createElement("a"), { href: "#", textContent: said });
    const place = document.createElement("span");
    place.append(link);
    return place;
  }))"""


def test_a_finger_hits_each_link_of_what_was_searched(browser: Browser, product: Product) -> None:
    with opened(browser, **WINDOWS["phone"], timezone_id="UTC") as context:
        page = context.new_page()
        sign_in(page, product)
        page.goto(f"{product.url}/archive/?q=state:dead")
        page.evaluate(LED_ON)
        found = Axe().run(page, ".covered", RULES["phone"])
        assert not found.response["violations"], found.generate_report()


@pytest.mark.parametrize("address", ["/workers/", "/endpoints/Demo.Billing/"])
def test_a_process_is_in_sight_with_all_its_figures(address: str, browser: Browser, product: Product) -> None:
    """At 1280 px too: figures beyond the edge of the table are not read at night."""
    with opened(browser, viewport={"width": 1280, "height": 900}, timezone_id="UTC") as context:
        page = context.new_page()
        sign_in(page, product)
        page.goto(product.url + address)
        expect(page.locator("table.procs tbody tr").first).to_be_visible()
        beyond = "(tables) => tables.map((table) => table.parentElement.scrollWidth - table.parentElement.clientWidth)"
        assert max(page.locator("table.procs").evaluate_all(beyond)) <= 0
        page.evaluate(ALL_BUSY)
        assert cut(page, 1024) == []
