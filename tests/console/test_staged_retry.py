"""A staged retry on its page: planned in a form, followed by stages and classes, steered, started from a group."""

import re

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from pgqueue_admin.console.operations import live_progress
from pgqueue_admin.models import AuditEntry, Endpoint, MaskingRule, Operation, Queue, RetryPlan
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations.plans import Planned
from tests.archived_messages import OPERATOR, REFUSED, person
from tests.console.operating import choose, start
from tests.console.pages import matched, shown
from tests.older_schema import set_back
from tests.staged_retries import CALM, Clock, die, go_by, handle, look, plan_of, planned, sent, take

Q = f"state:dead error:{REFUSED}"
FORM = {
    "plan": "careful", "reason": "it is back", "try_first": "5", "watch_seconds": "1 min", "then_some": "50",
    "some_rate": "5 /s", "rest_rate": "20 /s", "give_up_seconds": "30 min", "stop_dead": "5", "stop_of": "50",
    "hold_above": "1,000",
}  # fmt: skip
ALL_AT_ONCE = Planned(try_first=0, then_some=0, rest_rate=100, stop_dead=0, **CALM)


@pytest.fixture
def ana(archived_console: str) -> User:
    return person("ana", *OPERATOR)


@pytest.fixture
def browser(ana: User) -> Client:
    client = Client()
    client.force_login(ana)
    return client


def frozen(browser: Client) -> str:
    return str(choose(browser, "retry", all="matching", q=Q)["Location"])


def fields(html: str) -> dict[str, str]:
    return dict(re.findall(r'<input form="go"[^>]*? name="(\w+)"[^>]*? value="([^"]*)"', html, re.S))


def figures(html: str) -> dict[str, str]:
    found = re.findall(r'</svg>\s*([^<]+?)\s*</dt>\s*<dd class="v"><span[^>]*>([^<]*)</span>', html)
    return dict(found) | dict(re.findall(r'<dt>(Not sent)</dt>\s*<dd class="v"><span[^>]*>([^<]*)</span>', html))


def test_many_are_offered_a_careful_plan_and_few_none(browser: Client) -> None:
    address = frozen(browser)
    html = shown(browser, address)
    assert fields(html) == {
        "try_first": "5", "watch_seconds": "1 min", "then_some": "50", "some_rate": "5 /s", "rest_rate": "20 /s",
        "give_up_seconds": "30 min", "stop_dead": "5", "stop_of": "50", "hold_above": "100", "waits": "yes",
    }  # fmt: skip
    assert 'aria-current="true">Careful<' in html
    assert "all sent in ≈ 1 min 12 s, where nothing holds it" in html
    flat = fields(shown(browser, f"{address}?plan=flat"))
    assert (flat["try_first"], flat["then_some"], flat["rest_rate"]) == ("0", "0", "20 /s")
    assert fields(shown(browser, f"{address}?plan=none")) == {}
    few = choose(browser, "retry", sent_ids(3))["Location"]
    html = shown(browser, few)
    assert fields(html) == {}
    assert 'aria-current="true">At once<' in html
    assert fields(shown(browser, f"{few}?plan=careful"))["try_first"] == "5"


def sent_ids(number: int) -> list[int]:
    with queue_database().read_session() as connection:
        dead = "select id from messages.message_archive where state = 'dead' order by id limit %(n)s"
        rows = connection.all(dead, {"n": number})
    return [row[0] for row in rows]


def test_form_values_become_the_plan(browser: Client) -> None:
    address = frozen(browser)
    assert start(browser, address, **FORM | {"rest_rate": "12.5/s", "waits": "yes"}).status_code == 303
    plan = RetryPlan.objects.get()
    assert (plan.try_first, plan.watch_seconds, plan.rest_rate) == (5, 60, 12.5)
    assert (plan.hold_above, plan.waits) == (1000, True)
    assert plan.operation.state == "waiting"
    mine = fields(shown(browser, f"{frozen(browser)}?plan=mine"))
    assert (mine["rest_rate"], mine["hold_above"]) == ("12.5 /s", "100"), "of another set another ceiling"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rest_rate": "fast"}, "“fast” is no rate"),
        ({"rest_rate": "nan"}, "“nan” is no rate"),
        ({"rest_rate": "1e9"}, "Messages a second for the rest: 0.01 to 10,000.0, you gave 1,000,000,000.0"),
        ({"try_first": "-1"}, "“-1” is no number"),
        ({"try_first": "5000"}, "Messages to try first: 0 to 100, you gave 5,000"),
        ({"watch_seconds": "soon"}, "“soon” is no duration"),
        ({"stop_dead": "60"}, "It cannot stop at 60 dead of any 50"),
        ({"reason": ""}, "Above 20 messages a reason is asked for"),
    ],
)
def test_invalid_plan_starts_nothing_and_is_kept_in_the_form(browser: Client, wrong: dict[str, str], said: str) -> None:
    answer = start(browser, frozen(browser), **FORM | wrong)
    html = answer.content.decode()
    assert answer.status_code == 422
    assert said in html
    assert "Nothing has started" in html
    typed = {**FORM, **wrong}
    typed.pop("plan"), typed.pop("reason")
    assert typed.items() <= fields(html).items() | {("waits", "yes")}
    assert not RetryPlan.objects.exists()
    assert Operation.objects.get().state == "frozen"


def test_with_nobody_receiving_the_safe_button_is_first(browser: Client) -> None:
    Endpoint.objects.create(name="Billing", schema="public", table="Billing", desired_processes=0)
    Queue.objects.update_or_create(schema="public", table="Billing", defaults={"kind": "input", "endpoint": "Billing"})
    address = frozen(browser)
    html = shown(browser, address)
    assert "nobody receives" in matched(r'<div class="notice crit">(.*?)</div>', html, re.S)
    buttons = [
        re.sub(r"<[^>]*>", "", each).strip()
        for each in re.findall(r"<button class=\"b[^>]*>(.*?)</button>", html[html.index("<h2>Go</h2>") :], re.S)
    ]
    assert buttons[:3] == [
        "Leave them dead", "Retry 88 in demo when Billing receives", "Retry 5 now all the same",
    ]  # fmt: skip
    start(browser, address, **FORM | {"waits": "yes", "now": "1"})
    assert not RetryPlan.objects.get().waits
    start(browser, frozen(browser), **FORM | {"when": "received"})
    assert RetryPlan.objects.latest("pk").waits, "as the button said"


def test_tables_of_the_version_before_offer_none_and_say_what_to_run(browser: Client) -> None:
    address = frozen(browser)
    with queue_database().write_session() as connection:
        set_back(connection, 6)
    html = shown(browser, f"{address}?plan=careful")
    assert "manage.py engine_schema" in html
    assert fields(html) == {}


def test_the_page_tells_every_class_and_its_figures_are_those_of_its_lists(browser: Client, ana: User) -> None:
    operation, clock = planned(ana, ALL_AT_ONCE), Clock()
    look(operation, clock)
    ids = sent(operation)
    handle(operation, ids[:3])
    die(operation, ids[3:5])
    die(operation, ids[5:6], exception_type="Other.Exception", stack_trace=None)
    take(operation, ids[6:10])
    look(operation, clock)
    address = f"/operations/{operation.pk}/"
    html = shown(browser, address)
    known = figures(html)
    assert known == {
        "Succeeded": "3", "Picked up": "0", "Sent, waiting": "78", "Dead, same": "2", "Dead, another": "1",
        "Not known": "4", "Skipped": "0", "Failed": "0", "Not sent": "0",
    }  # fmt: skip
    assert "sent; outcome of 82 unknown" in html
    assert 'class="ok" x="0" width="3"' in html
    assert 'class="deadf" x="81" width="2"' in html
    assert ">Exception</a>" in html
    assert "is no endpoint of ours" in html
    for outcome, count in (("succeeded", 3), ("same", 2), ("other", 1), ("unknown", 4), ("rough", 7), ("failed", 0)):
        listed = shown(browser, f"{address}?o={outcome}")
        assert listed[listed.index('id="outcome"') :].count('data-l="Outcome"') == count, outcome
    told = live_progress.live(str(operation.pk))
    assert figures(told[f"op.{operation.pk}.progress"].replace("\u00a0", " ")) == known
    go_by(operation, 3600)
    look(operation, clock)
    html = shown(browser, address)
    assert "ended, 82 unknown" in html
    assert "Given up 30 min after the last was sent." in html
    assert "ended, 82 unknown" in shown(browser, "/operations/") or "ended" in shown(browser, "/operations/")


def test_a_stopped_one_says_why_and_goes_on_when_somebody_says_so(browser: Client, ana: User) -> None:
    operation, clock = planned(ana), Clock()
    look(operation, clock)
    address = f"/operations/{operation.pk}/"
    html = shown(browser, address)
    assert "running, the trial" in html or "running, 5/s" in html
    assert "Stops by itself at 5 dead of any 50: now 0." in html
    die(operation, sent(operation)[:1])
    look(operation, clock)
    html = shown(browser, address)
    assert "Stopped by itself: 1 of the first 5 died again." in html
    assert "Go on with the remaining 83 of operation" in html
    assert browser.post(f"{address}resume/", {"reason": "known"})["Location"] == address
    assert plan_of(operation).operation.state == "running"
    assert AuditEntry.objects.get(verb="resume").reason == "known"


def test_pause_rate_and_cancel_from_the_page(browser: Client, ana: User) -> None:
    operation, clock = planned(ana, Planned(try_first=0, then_some=0, **CALM)), Clock()
    look(operation, clock)
    address = f"/operations/{operation.pk}/"
    browser.post(f"{address}pause/")
    assert "paused by ana" in shown(browser, address)
    assert "Nothing was paused: ana paused operation" in follow(browser, f"{address}pause/")
    assert "Resume the remaining 68" in shown(browser, address)
    assert "The rest goes at 7/s from the next chunk" in follow(browser, f"{address}rate/", rate="7 /s", before="20.0")
    assert "you saw 20/s" in follow(browser, f"{address}rate/", rate="9 /s", before="20.0")
    assert "“x” is no rate" in follow(browser, f"{address}rate/", rate="x", before="7.0")
    browser.post(f"{address}cancel/")
    html = shown(browser, address)
    assert "the rest cancelled; outcome of 20 unknown" in html
    assert "Pause" not in html


def follow(browser: Client, address: str, **given: str) -> str:
    return shown(browser, str(browser.post(address, given)["Location"]))


def test_steering_without_the_right_is_refused_with_the_reason(ana: User, browser: Client) -> None:
    operation = planned(ana, ALL_AT_ONCE)
    viewer = Client()
    viewer.force_login(person("ivo"))
    address = f"/operations/{operation.pk}/"
    assert "Can retry dead messages" in shown(viewer, address)
    for verb in ("pause", "resume", "rate"):
        assert "Can retry dead messages" in follow(viewer, f"{address}{verb}/", rate="5")
    assert plan_of(operation).operation.state == "waiting"


def test_error_of_a_message_dead_again_needs_the_read_right(browser: Client, ana: User) -> None:
    operation = planned(ana, ALL_AT_ONCE)
    look(operation, Clock())
    die(operation, sent(operation)[:1], exception_message="no card 4711 here")
    address = f"/operations/{operation.pk}/"
    assert "no card" not in shown(browser, address)
    ana.user_permissions.add(Permission.objects.get(codename="read_message"))
    assert "no card 4711 here" in shown(browser, address)
    MaskingRule.objects.create(name="Card", kind="regex", pattern=r"card \d+")
    assert "no ⟦masked: Card⟧ here" in shown(browser, address)
