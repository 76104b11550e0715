"""The answer of an act links onward and back."""

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.models import Alert, AuditEntry, Endpoint, MaskingRule, Queue, RetryRule
from tests.console.pages import Answer, matched, shown
from tests.console.recorded import Recorded
from tests.console.test_subscriptions import row_of


def answer(client: Client, response: Answer) -> str:
    """The notice on the page that the act redirected to."""
    assert response.status_code == 303, response.content
    page = shown(client, response["Location"].partition("#")[0])
    return matched(r'(<div class="notice good" role="status">.*?\n  </div>)', page, re.DOTALL)


def press(client: Client, notice: str, word: str) -> Answer:
    """Press a button of the notice, as a browser would post it."""
    form = next(form for form in re.findall(r"<form.*?</form>", notice, re.DOTALL) if f">{word}</button>" in form)
    fields = {name: unescape(value) for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
    return client.post(matched(r'action="([^"]*)"', form), fields)


def act(client: Client, kind: str, archive_id: int) -> str:
    given = {"act": kind, "id": archive_id, "at_once": "yes", "next": "/archive/"}
    return answer(client, client.post("/operations/", given))


def test_a_retry_leads_to_its_message_and_operation(recorded: Recorded) -> None:
    card = recorded.refused_card()
    notice = act(recorded.operator, "retry", card)
    assert f'<a href="/archive/{card}/">See the message</a>' in notice
    number = matched(r'<a href="/operations/(\d+)/">', notice)
    assert f"Operation {number}" in notice
    assert "<button" not in notice  # the receiver may have handled it already


def test_a_discard_is_undone_and_that_is_too(recorded: Recorded) -> None:
    card = recorded.refused_card()
    notice = act(recorded.operator, "discard", card)
    assert recorded.state(card) == "discarded"
    notice = answer(recorded.operator, press(recorded.operator, notice, "Undo"))
    assert recorded.state(card) == "dead"
    press(recorded.operator, notice, "Undo")
    assert recorded.state(card) == "discarded"


@pytest.fixture
def orders(console_database: str) -> Endpoint:
    return Endpoint.objects.create(name="Shop.Orders", schema="public", table="Orders", desired_processes=2)


@pytest.mark.parametrize(
    ("verb", "given", "word"),
    [
        ("pause", {}, "Resume"),
        ("scale", {"processes": "5"}, "Undo"),
        ("stop", {}, "Undo"),
        ("settings", {"peek_delay_ms": "2 s", "concurrency": "1"}, "Undo"),
    ],
)
def test_act_on_an_endpoint_is_undone_from_its_answer(
    as_operator: Client, orders: Endpoint, verb: str, given: dict[str, str], word: str
) -> None:
    fields = ("desired_processes", "paused", "peek_delay_ms")
    before = [getattr(orders, name) for name in fields]
    if verb == "settings":
        form = shown(as_operator, "/endpoints/Shop.Orders/?edit=1")
        typed = dict(re.findall(r'<input id="id_(\w+)" name="\w+" value="([^"]*)"', form))
        chosen = dict(re.findall(r'<select name="(\w+)".*?<option value="(\w+)" selected', form, re.DOTALL))
        given = {**typed, **chosen, "notify": "on", "version": "1", **given}
    response = as_operator.post(f"/endpoints/Shop.Orders/{verb}/", {**given, "next": "/endpoints/"})
    notice = answer(as_operator, response)
    orders.refresh_from_db()
    assert [getattr(orders, name) for name in fields] != before
    assert 'href="/endpoints/Shop.Orders/#' in notice
    answer(as_operator, press(as_operator, notice, word))
    orders.refresh_from_db()
    assert [getattr(orders, name) for name in fields] == before


def test_a_start_from_nothing_is_undone_by_a_stop(as_operator: Client, orders: Endpoint) -> None:
    Endpoint.objects.update(desired_processes=0)
    notice = answer(as_operator, as_operator.post("/endpoints/Shop.Orders/start/", {"next": "/workers/"}))
    assert 'action="/endpoints/Shop.Orders/stop/"' in notice


def test_targets_are_undone_and_done_again(as_operator: Client) -> None:
    Queue.objects.create(schema="public", table="Billing", kind="input", target_depth=10)
    place = "/settings/queues/public/Billing/"
    version = matched(r'name="version" value="(\d+)"', shown(as_operator, place))
    notice = answer(as_operator, as_operator.post(place, {"target_depth": "99", "version": version}))
    assert '<a href="/queues/public/Billing/">See the queue</a>' in notice
    notice = answer(as_operator, press(as_operator, notice, "Undo"))
    assert Queue.objects.get().target_depth == 10
    press(as_operator, notice, "Undo")
    assert Queue.objects.get().target_depth == 99


def test_an_acknowledged_warning_is_put_back(as_operator: Client) -> None:
    now = timezone.now()
    alert = Alert.objects.create(
        kind="dead", queue='"public"."B"', severity="critical", opened_at=now, last_seen_at=now
    )
    response = as_operator.post(f"/alerts/{alert.pk}/acknowledgement/", {"next": "/alerts/"})
    notice = answer(as_operator, response)
    assert f'<a href="/alerts/{alert.pk}/">See the warning</a>' in notice
    press(as_operator, notice, "Undo")
    alert.refresh_from_db()
    assert alert.acknowledged_at is None


def test_a_declaration_is_undone_and_made_again(as_operator: Client) -> None:
    given = {"name": "Legacy.Orders", "queue": '"public"."Odd ""name"""', "peek_delay_ms": "1.5 s"}
    notice = answer(as_operator, as_operator.post("/endpoints/", given))
    notice = answer(as_operator, press(as_operator, notice, "Undo"))
    assert not Endpoint.objects.exists()
    press(as_operator, notice, "Declare again")
    row = Endpoint.objects.get()
    assert (row.name, row.table, row.peek_delay_ms, row.ours) == ("Legacy.Orders", 'Odd "name"', 1500, False)


def test_hostile_names_are_text(as_operator: Client, console_database: str) -> None:
    name = '"><script>alert(1)</script>'
    Endpoint.objects.create(name=name, schema="public", table="Orders", desired_processes=1)
    page = shown(as_operator, "/workers/")
    as_operator.post(matched(r'action="(/endpoints/[^"]*script[^"]*pause/)"', page), {"next": "/endpoints/"})
    assert Endpoint.objects.get().paused
    page = shown(as_operator, "/endpoints/")
    assert "<script>alert" not in page
    assert "Resume" in page
    assert AuditEntry.objects.get().verb == "pause"


def test_an_ended_subscription_is_undone(recorded: Recorded) -> None:
    row, before = row_of(recorded), recorded.rows("SubscriptionRouting")
    notice = answer(recorded.operator, recorded.operator.post("/subscriptions/unsubscribe/", {**row, "sure": "yes"}))
    assert recorded.rows("SubscriptionRouting") == before - 1
    assert "is subscribed again" in answer(recorded.operator, press(recorded.operator, notice, "Undo"))
    assert recorded.rows("SubscriptionRouting") == before


def test_a_retry_rule_is_undone_whichever_way(recorded: Recorded) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    rule = {"message_type": "Shop.*", "queue": "", "target": '"public"."Sales"'}
    notice = answer(recorded.operator, recorded.operator.post("/settings/retry-rules/", rule))
    kept = RetryRule.objects.values("message_type", "queue", "target").get()
    notice = answer(recorded.operator, press(recorded.operator, notice, "Undo"))
    assert not RetryRule.objects.exists()
    press(recorded.operator, notice, "Undo")
    assert RetryRule.objects.values("message_type", "queue", "target").get() == kept


def test_a_masking_rule_is_undone_whichever_way(recorded: Recorded) -> None:
    rule = {"name": "Card", "kind": "path", "pattern": "**.card", "types": "Shop.Pay*, PlaceOrder", "reason": "SEC-7"}
    notice = answer(recorded.operator, recorded.operator.post("/settings/masking/", rule))
    notice = answer(recorded.operator, press(recorded.operator, notice, "Undo"))
    assert not MaskingRule.objects.exists()
    press(recorded.operator, notice, "Undo")
    assert MaskingRule.objects.get().types == ["Shop.Pay*", "PlaceOrder"]
