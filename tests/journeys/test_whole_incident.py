"""One incident from its mail to its audit: by mouse, by keyboard alone, on a phone, and without scripts."""

import email
import email.policy
import re
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from pgqueue_admin.demo import contracts
from pgqueue_admin.dialects.postgresql import postgresql
from tests.journeys.conftest import Complaints, opened, sign_in
from tests.journeys.product import Product
from tests.journeys.test_keyboard import tab_to
from tests.journeys.test_pages import WINDOWS, overflow
from tests.waiting import until

pytestmark = pytest.mark.journey
LOOKS: dict[str, dict[str, Any]] = {
    "mouse": WINDOWS["light"],
    "keyboard": WINDOWS["light"],
    "phone": WINDOWS["phone"],
    "scripts-off": {**WINDOWS["light"], "java_script_enabled": False},
}
GOOD, JUNK, ALL = 5, 8, 600  # the first succeed, the next are truncated, the rest wait to be resent
ELSEWHERE = "public.Shop.Web"
# as a foreign endpoint leaves them in its error queue: one a second, the last just now
DIED = """
insert into demo.error (id, headers, body)
select gen_random_uuid(), jsonb_build_object(
    'NServiceBus.MessageId', concat('journey-', %(look)s::text, '-', n),
    'NServiceBus.EnclosedMessageTypes', %(type)s::text, 'NServiceBus.ContentType', 'application/json',
    'NServiceBus.FailedQ', %(queue)s::text, 'NServiceBus.ExceptionInfo.ExceptionType', %(cause)s::text,
    'NServiceBus.ExceptionInfo.Message', concat('parcel ', n, ' was refused'),
    'NServiceBus.TimeOfFailure', to_char(
        (now() - (%(all)s - n) * interval '1 s') at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS:US "Z"'))::text,
    convert_to(case when n between %(good)s + 1 and %(good)s + %(junk)s then concat('{"order": "', %(look)s::text, '-',
        1000 + n) else concat('{"order": "', %(look)s::text, '-', 1000 + n, '"}') end, 'UTF8')
from generate_series(1, %(all)s) n
"""


def cause_of(look: str) -> str:
    return f"Journey.{look.title().replace('-', '')}.ParcelRefused"


@pytest.fixture(scope="module")
def incidents(product: Product) -> None:
    """All at once, so that one wait for the mails serves every look."""
    about = {"type": contracts.ORDER_SHIPPED, "queue": contracts.queue(contracts.WEB), "all": ALL}
    about |= {"good": GOOD, "junk": JUNK}
    with postgresql().connect(product.dsn, for_handlers=True) as connection:
        for look in LOOKS:
            connection.run(DIED, {**about, "look": look, "cause": cause_of(look)})


class Operator:
    """A person at a browser, who uses the given input device."""

    def __init__(self, page: Page, look: str):
        self.page, self.look = page, look

    def press(self, place: Locator) -> None:
        """Press a button or link, or tick a box."""
        if self.look == "keyboard":
            tab_to(self.page, place)
        # a request or key before the next page arrives would cancel it or go to the old page
        with self.page.expect_navigation() if self._leads_on(place) else nullcontext():
            if self.look == "keyboard":
                self.page.keyboard.press("Space" if place.get_attribute("type") == "checkbox" else "Enter")
            else:
                place.click()

    @staticmethod
    def _leads_on(place: Locator) -> bool:
        return not place.get_attribute("popovertarget") and place.get_attribute("type") != "checkbox"

    def type(self, label: str | re.Pattern[str], text: str) -> None:
        place = self.page.get_by_role("textbox", name=label, exact=isinstance(label, str)).first
        if self.look == "keyboard":
            tab_to(self.page, place)
            self.page.keyboard.press("Control+a")
            self.page.keyboard.type(text) if text else self.page.keyboard.press("Delete")
        else:
            place.fill(text)

    def choose(self, label: str, option: str) -> None:
        place = self.page.get_by_label(label, exact=True)
        if self.look == "keyboard":
            tab_to(self.page, place)
            self.page.keyboard.type(option)
        else:
            place.select_option(label=option)

    def sees(self, place: Locator) -> None:
        """Wait until it is visible; without scripts, by reloading. The page must fit the window."""
        if self.look == "scripts-off":
            until(lambda: place.first.is_visible() or (self.page.goto(self.page.url), place.first.is_visible())[1])
            return
        expect(place.first).to_be_visible()
        width = self.page.viewport_size["width"] if self.page.viewport_size else 0
        assert overflow(self.page, width) <= 0, self.page.url

    def button(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("button", name=name).first

    def link(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("link", name=name).first

    def heading(self, name: str | re.Pattern[str]) -> Locator:
        return self.page.get_by_role("heading", level=1, name=name)

    def number(self) -> str:
        """The number of the operation that the page shows."""
        found = re.search(r"/operations/(\d+)/", self.page.url)
        assert found, self.page.url
        return found[1]


@pytest.fixture(params=LOOKS)
def operator(
    request: pytest.FixtureRequest, browser: Browser, product: Product, complaints: Complaints
) -> Iterator[Operator]:
    look = {**LOOKS[request.param], "timezone_id": "UTC", "locale": "en-GB", "reduced_motion": "reduce"}
    with opened(browser, **look) as context:
        page = context.new_page()
        complaints.watch(page)
        sign_in(page, product)
        yield Operator(page, request.param)
    assert not complaints


def test_an_incident_from_its_mail_to_its_audit(operator: Operator, product: Product, incidents: None) -> None:
    # it is sent after 2,400 messages are ingested and no other mail is due
    operator.page.goto(until(lambda: link_of_mail(product, cause_of(operator.look)), 180, "the mail"))
    group = owned_and_noted(operator)
    staged = tried_and_stopped_by_itself(operator)
    edited(operator, product)
    elsewhere = the_rest_goes_elsewhere(operator, product, group)
    discarded = junk_is_discarded(operator, product)
    restored = one_is_restored(operator, product, discarded)
    is_all_in_the_audit(operator, product, group, (staged, elsewhere, discarded, restored))


def link_of_mail(product: Product, cause: str) -> str:
    """The link to the failure in the mail about this cause; the next link searches for its messages."""
    for each in (product.var / "mail").glob("*.log"):
        for part in each.read_text().split("\nContent-Type: multipart/alternative"):
            text = part if part.startswith("Content-Type") else f"Content-Type: multipart/alternative{part}"
            mail = email.message_from_string(text, policy=email.policy.default)
            said = mail.get_body(("plain",))
            links = re.findall(r"\S+/(?:failures|archive)/\S+", said.get_content() if said else "")
            for failure, messages in pairwise(links):
                if quote(f"error:={cause}").replace("%20", "+") in messages and "/failures/" in failure:
                    return str(failure)
    return ""


def owned_and_noted(operator: Operator) -> str:
    """Return the failure's fingerprint."""
    page = operator.page
    operator.sees(operator.heading("ParcelRefused in Demo.Web"))
    operator.press(operator.button("Take it"))
    operator.type("Note", "the carrier was down until 14:02")
    operator.press(operator.button("Save"))
    operator.sees(page.get_by_text("the carrier was down until 14:02"))
    return page.url.rstrip("/").split("/")[-1].split("?")[0]


def tried_and_stopped_by_itself(operator: Operator) -> str:
    page = operator.page
    operator.press(operator.button(re.compile(rf"^Retry {ALL} in stages…")))
    operator.sees(operator.heading(re.compile(rf"^Retry {ALL} messages")))
    operator.type("for", "1 s")
    operator.type("Then how many", "0")
    operator.type(re.compile(r"^\d+ at$"), "50 /s")
    operator.type(re.compile("while a target"), "")
    starts(operator, re.compile(rf"^Retry {ALL}"))
    operator.sees(page.get_by_text("Stopped by itself:"))
    expect(page.get_by_text(f"{ALL - GOOD} at 50/s").first).to_be_visible()
    operator.press(operator.button(re.compile("^Cancel the remaining")))
    operator.press(operator.button(re.compile("^Cancel the remaining .* in demo")))
    # if the outcome of the few that went is known soon, it has ended before the page loads
    operator.sees(page.get_by_text(re.compile("the rest cancelled|cancelled by ")))
    return operator.number()


def starts(operator: Operator, button: re.Pattern[str]) -> None:
    """Start it with a reason, and with the count where that is asked for."""
    operator.type("Reason, kept in the audit", "the carrier is back")
    if operator.page.get_by_label(re.compile("^Type the count")).count():
        count = operator.page.get_by_text(re.compile("^Type the count")).inner_text()
        operator.type(re.compile("^Type the count"), re.sub(r"\D", "", count))
    operator.press(operator.button(button))


def edited(operator: Operator, product: Product) -> None:
    """Repair one of the truncated messages and see it succeed."""
    page = operator.page
    page.goto(f"{product.url}/archive/")
    page.get_by_label("Search the archive").focus()
    page.keyboard.press("Control+a")
    order = f"{operator.look}-{1000 + GOOD + JUNK}"  # the customer's order number, which only the body contains
    page.keyboard.type(f'state:dead "{order}"')
    with page.expect_navigation():
        page.keyboard.press("Enter")
    operator.sees(page.get_by_text("in all texts"))
    operator.press(page.get_by_role("table").get_by_role("link", name="OrderShipped"))
    operator.sees(operator.heading("OrderShipped"))
    operator.press(operator.link("Edit and retry…"))
    body = page.get_by_label("As it will be").input_value()
    operator.type("As it will be", f'{body}"}}')
    if operator.look == "scripts-off":
        operator.press(operator.button("Compare"))
    operator.sees(page.locator("#changes ins"))
    operator.type("Reason, kept in the audit", "cut off on its way")
    operator.press(operator.button("Retry 1 edited"))
    operator.sees(page.get_by_text("succeeded"))


def the_rest_goes_elsewhere(operator: Operator, product: Product, group: str) -> str:
    """Retry the rest by a rule that sends them elsewhere, then remove the rule."""
    page = operator.page
    page.goto(f"{product.url}/settings/retry-rules/")
    operator.type("Message type", contracts.ORDER_SHIPPED)
    operator.choose("Go to", ELSEWHERE)
    operator.press(operator.button("Keep the rule"))
    operator.sees(operator.button(re.compile("^Remove rule")))
    page.goto(f"{product.url}/failures/{group}/")
    operator.press(operator.button(re.compile(r"^Retry \d+ in stages…")))
    operator.press(operator.link("At once"))
    operator.sees(page.get_by_label(re.compile("by rule")))
    starts(operator, re.compile(r"^Retry \d+"))
    operator.sees(page.get_by_text("ended"))
    there = operator.number()
    page.goto(f"{product.url}/settings/retry-rules/")
    operator.press(operator.button(re.compile("^Remove rule")))
    operator.sees(page.get_by_text("No rule yet"))
    return there


def junk_is_discarded(operator: Operator, product: Product) -> str:
    """Discard the seven unreadable messages."""
    page = operator.page
    page.goto(f"{product.url}/archive/?q=state:dead+error:MessageUnreadable+id:journey-{operator.look}-*")
    boxes = page.get_by_role("table").get_by_role("checkbox", name=re.compile("^Select archive"))
    for number in range(JUNK - 1):
        operator.press(boxes.nth(number))
    operator.press(operator.button(re.compile("^Discard")))
    operator.sees(operator.heading(f"Discard {JUNK - 1} messages"))
    starts(operator, re.compile(f"^Discard {JUNK - 1}"))
    operator.sees(operator.button(re.compile(f"^Restore all {JUNK - 1}")))
    return operator.number()


def one_is_restored(operator: Operator, product: Product, discarded: str) -> str:
    page = operator.page
    page.goto(f"{product.url}/bin/")
    operator.press(page.get_by_role("checkbox", name=re.compile(r"^Select archive")).first)
    operator.press(operator.button(re.compile("^Restore")))
    operator.sees(operator.heading("Restore 1 message"))
    starts(operator, re.compile("^Restore 1"))
    operator.sees(page.get_by_text("ended"))
    return operator.number()


def is_all_in_the_audit(operator: Operator, product: Product, group: str, operations: tuple[str, ...]) -> None:
    page = operator.page
    page.goto(f"{product.url}/audit/")
    staged, elsewhere, discarded, restored = operations
    for said in (
        f"restored 1 message of Demo.Web, operation {restored}",
        f"discarded {JUNK - 1} messages of Demo.Web, operation {discarded}",
        "removed retry rule",
        re.compile(rf"retried \d+ messages of Shop.Web, operation {elsewhere}"),
        "created retry rule",
        "edited and retried 1 message of Demo.Web",
        f"cancelled operation {staged}",
        f"stopped operation {staged}",
        f"retried {ALL} messages of Demo.Web, operation {staged}",
        f"set what is known of failure {group}",
    ):
        operator.sees(page.get_by_role("rowheader", name=said))
