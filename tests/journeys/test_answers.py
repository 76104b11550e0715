"""An act's answer links back; open pages elsewhere follow the act; forms announce what they will do."""

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.journeys.conftest import opened, shoot, sign_in
from tests.journeys.product import Product
from tests.said_times import SHORT
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.journey

ORDERS = "/queues/demo/Demo.Orders/"


def dead_message(page: Page, product: Product) -> str:
    """Open a dead message of Billing; return its address."""
    link = page.locator("main tbody th a").first

    def listed() -> bool:  # the first request may time out on a busy machine
        page.goto(f"{product.url}/archive/?q=state:dead+queue:Billing")
        return bool(link.count())

    until(listed, PATIENCE, "dead messages of Billing")
    link.click()
    page.wait_for_url(re.compile(r"/archive/\d+/"))
    return page.url.partition("?")[0]


def test_a_discard_is_undone_and_other_pages_follow(page: Page, context: BrowserContext, product: Product) -> None:
    address = dead_message(page, product)
    other = context.new_page()
    other.goto(address)
    expect(other.locator("[data-live-word]")).to_have_text("Live")
    page.get_by_role("button", name="Discard…").click()
    page.get_by_role("button", name="Discard it").click()
    answer = page.locator(".notice.good")
    expect(answer).to_contain_text("1 message discarded")
    expect(answer.get_by_role("link", name=re.compile("^Operation"))).to_be_visible()
    shoot(page, "answer")
    notice = other.locator('[data-live="message.was.dead"]')
    expect(notice).to_contain_text("This message is discarded now.")
    expect(other.get_by_role("button", name="Discard…")).to_be_hidden()
    expect(other.locator("#what")).to_contain_text("Discarded by")
    expect(other).to_have_title(re.compile("discarded"))
    shoot(other, "message-followed")
    answer.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice.good")).to_contain_text("restored")
    expect(notice).to_be_hidden()
    expect(other.get_by_role("button", name="Discard…")).to_be_visible()


def test_a_page_that_follows_nothing_does_not_say_live(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/archive/")
    expect(page.locator("[data-live-word]")).to_have_text(re.compile(f"^As of {SHORT}$"))


def test_peek_settings_say_what_they_would_do_and_stay_on_their_page(page: Page, product: Product) -> None:
    page.goto(f"{product.url}{ORDERS}?edit=1#settings")
    page.get_by_label("Peek delay").fill("12 s")
    effect = page.locator("#effect")
    expect(effect).to_contain_text("is looked at every 12")
    expect(effect.locator(".notice.warn")).to_contain_text("allowed is 100 ms to 10 s")
    expect(page.get_by_label("Messages a transaction")).to_be_hidden()
    page.get_by_label("Peek delay").fill("5 days")
    expect(effect).to_contain_text("Peek delay is from 1 ms to 1 d")
    page.get_by_label("Peek delay").fill("2 seconds")
    expect(effect).to_contain_text("is looked at every 2")
    shoot(page, "peek-settings")
    page.get_by_role("button", name=re.compile("^Save on")).click()
    page.wait_for_url(re.compile(f"{re.escape(ORDERS)}#settings$"))
    answer = page.locator(".notice.good")
    expect(answer).to_contain_text("peek delay")
    answer.get_by_role("button", name="Undo").click()
    expect(page.locator(".notice.good")).to_contain_text("is back")


def test_on_a_phone_pause_asks_and_resume_is_in_the_answer(browser: Browser, product: Product) -> None:
    with opened(browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True) as context:
        page = context.new_page()
        sign_in(page, product)
        page.goto(f"{product.url}/endpoints/Demo.Web/")
        page.get_by_role("button", name="Pause…").tap()
        question = page.get_by_role("dialog", name=re.compile("^Pause Demo.Web"))
        expect(question).to_be_visible()
        shoot(page, "pause-phone")
        question.get_by_role("button", name="Pause it").tap()
        answer = page.locator(".notice.good")
        expect(answer).to_contain_text("Demo.Web is paused")
        shoot(page, "answer-phone")
        answer.get_by_role("button", name="Resume").tap()
        expect(page.locator(".notice.good")).to_contain_text("receives again")


def test_keys_lead_to_every_entry_and_turn_the_body(page: Page, product: Product) -> None:
    for key, place in {
        "d": "/delayed/",
        "s": "/subscriptions/",
        "e": "/endpoints/",
        "t": "/trends/",
        "n": "/settings/",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"{product.url}{place}*")
    address = dead_message(page, product)
    page.goto(address)
    page.keyboard.press("b")
    page.wait_for_url(re.compile(r"body=raw"))


def test_queues_of_other_schemas_are_counted_on_queues(page: Page, product: Product) -> None:
    page.goto(f"{product.url}/queues/")
    expect(page.locator(".covered")).to_contain_text("No other schema of this database")
