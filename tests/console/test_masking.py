"""Masking rules on their pages: saved, changed, removed, refused; and who is offered what."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.models import AuditEntry, MaskingRule, Trial, database_clock
from pgqueue_admin.monitor.message import StoredMessage
from pgqueue_admin.services.content_access import REFUSED, of_everybody
from tests.console.pages import shown
from tests.console.recorded import Recorded

PAGE = "/settings/masking/"
CARD = {"name": "Card", "kind": "path", "pattern": "**.card", "types": "Shop.Pay*, PlaceOrder", "reason": "SEC-7"}


@pytest.fixture(autouse=True)
def none(looked_at: Recorded) -> Iterator[None]:
    yield
    MaskingRule.objects.all().delete()


def post(client: Client, status: int, path: str = PAGE, **typed: Any) -> str:
    answer = client.post(path, {**CARD, **typed})
    assert answer.status_code == status, answer.content.decode()[:3000]
    return unescape(answer.content.decode())


def last() -> tuple[Any, ...]:
    entry = AuditEntry.objects.filter(noun="masking")[0]
    return entry.verb, entry.subject, entry.before, entry.after, entry.reason


def test_a_rule_is_added_changed_and_removed_with_its_entries(looked_at: Recorded) -> None:
    post(looked_at.operator, 303)
    made = {"name": "Card", "kind": "path", "pattern": "**.card", "types": ["Shop.Pay*", "PlaceOrder"]}
    assert last() == ("create", "Card", None, made, "SEC-7")
    rule = MaskingRule.objects.get()
    page = shown(looked_at.operator, PAGE)
    assert "**.card" in page
    assert "Shop.Pay*, PlaceOrder" in page
    own = f"{PAGE}{rule.pk}/"
    assert 'value="Shop.Pay*, PlaceOrder"' in shown(looked_at.operator, own)
    post(looked_at.operator, 303, own, pattern="card", version=1)
    assert last() == ("set", "Card", made, {**made, "pattern": "card"}, "SEC-7")
    assert "changed this rule meanwhile" in post(looked_at.operator, 422, own, pattern="late", version=1)
    post(looked_at.operator, 303, own, remove="yes", version=2)
    assert last()[:2] == ("remove", "Card")
    assert "created the masking rule Card" in unescape(shown(looked_at.operator, "/audit/?q=on:masking"))
    assert looked_at.operator.get(own).status_code == 404


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"kind": "regex", "pattern": "a(?=b)"}, "“(?=”, character 2: looking ahead or behind is not possible here"),
        ({"pattern": "a[0].b"}, "“[0].b”, character 2: of a list each element is meant"),
        ({"kind": "header", "pattern": "NServiceBus.MessageId"}, "is shown to everybody, as messages are found by it"),
        ({"name": "a⟧b"}, "Name: 1 to 60"),
        ({"name": "CARD"}, "There is a rule CARD already"),
    ],
)
def test_a_rule_that_is_none_is_refused_and_kept_on_the_page(looked_at: Recorded, typed: Any, why: str) -> None:
    MaskingRule.objects.create(name="Card", kind="header", pattern="Shop.*")
    page = post(looked_at.operator, 422, **typed)
    assert why in page
    assert f'value="{typed.get("pattern", "**.card")}"' in page
    assert MaskingRule.objects.count() == 1


def test_masking_rule_changes_need_the_reveal_right(looked_at: Recorded) -> None:
    rule = MaskingRule.objects.create(name="Card", kind="header", pattern="Shop.*")
    for path in (PAGE, f"{PAGE}{rule.pk}/"):
        assert "Changing what is masked needs the right" in unescape(shown(looked_at.viewer, path))
        post(looked_at.viewer, 403, path, version=1)
    post(looked_at.viewer, 403, f"{PAGE}{rule.pk}/", remove="yes", version=1)
    assert MaskingRule.objects.get().pattern == "Shop.*"


def test_no_rule_no_note(looked_at: Recorded) -> None:
    message = f"/archive/{looked_at.refused_card()}/"
    assert "Masking rules" not in shown(looked_at.viewer, message)
    MaskingRule.objects.create(name="Card", kind="header", pattern="Shop.*")
    page = unescape(shown(looked_at.viewer, message))
    assert "Reveal…" in page
    assert "needs the right “Can reveal masked parts" in page
    assert 'action="/masking/reveal/"' not in page
    assert 'action="/masking/reveal/"' in shown(looked_at.operator, message)


def test_why_bodies_are_not_begun_in_a_list_is_said_once(looked_at: Recorded) -> None:
    path = "/queues/public/Mailer/messages/?cols=bodyline"
    assert unescape(shown(looked_at.counter, path)).count(REFUSED) == 1
    MaskingRule.objects.create(name="Card", kind="path", pattern="card")
    page = shown(looked_at.viewer, path)
    assert page.count("The start of bodies is not shown") == 1
    assert "sub mono clip" not in page


def test_edit_is_shown_with_the_reason_to_who_may_not(looked_at: Recorded) -> None:
    message = f"/archive/{looked_at.refused_card()}/"
    for client, right in ((looked_at.counter, "Can read message"), (looked_at.viewer, "Can retry dead")):
        page = unescape(shown(client, message))
        assert f'href="{message}edit/"' not in page
        found = re.search(r"Edit and retry….*?</span>", page, re.DOTALL)
        assert found
        assert right in found[0]
    assert f'href="{message}edit/"' in shown(looked_at.operator, message)


def test_a_failure_compares_no_hidden_field(looked_at: Recorded) -> None:
    """That all share a value, or how many have one, would reveal something too."""
    links = re.findall(r'href="(/failures/[0-9a-f]{16}/)"', shown(looked_at.viewer, "/failures/"))
    link = next(each for each in links if "Body " in shown(looked_at.viewer, each))
    before = shown(looked_at.viewer, link)
    MaskingRule.objects.create(name="Deep", kind="path", pattern="**.none of these")
    assert re.findall(r"Body \w+", shown(looked_at.viewer, link)) == re.findall(r"Body \w+", before)
    MaskingRule.objects.create(name="All", kind="path", pattern="*")
    MaskingRule.objects.create(name="Every", kind="header", pattern="*")
    after = shown(looked_at.viewer, link)
    assert not re.findall(r"Body \w+", after)
    assert "Message type" in after


SECRET = "4111222233334444"
FIELDS = (
    "queue", "endpoint", "type", "message_id", "sent_at", "started_at", "critical_ms", "processing_ms", "delivery_ms",
    "exception_type", "exception_message",
)  # fmt: skip


def card_of(looked_at: Recorded, types: str) -> int:
    """A dead message with the secret in its body, a header, its error and its trace."""
    headers = json.dumps({"NServiceBus.EnclosedMessageTypes": types, "Shop.Card": SECRET})
    said: Any = {"exception_type": "Shop.NoCard", "exception_message": f"no {SECRET}", "stack_trace": f"at {SECRET}()"}
    body, first = json.dumps({"card": SECRET}).encode(), types.split(",")[0]
    dead = DeadMessage(queue='"public"."Sales"', message_type=first, headers=headers, body=body, **said)
    store.archive_failed(looked_at.connection, dead)
    return int(looked_at.connection.value("select max(id) from messages.message_archive"))


def test_a_rule_of_any_of_its_types_holds_for_a_message(looked_at: Recorded) -> None:
    number = card_of(looked_at, "Shop.Pay, S;Shop.IHaveCard, S")
    asked = "select fingerprint from messages.message_archive where id = %(id)s"
    digest = looked_at.connection.value(asked, {"id": number})
    trial = Trial.objects.create(who="ana", origin="console", of=1, until=database_clock.now())
    trial.items.create(position=1, archive_id=number, message_type="Shop.Pay", outcome="raises", raised="E", why=SECRET)
    search = "/archive/?q=error:Shop.NoCard"
    one = f"/archive/{number}/"
    pages = [search, one, f"{one}?trace=full", f"/failures/{digest}/", f"/trials/{trial.pk}/"]
    MaskingRule.objects.create(name="Card", kind="regex", pattern=SECRET, types=["Shop.IHaveCard"])
    assert [path for path in pages if SECRET in shown(looked_at.viewer, path)] == []
    whole = store.show(looked_at.connection, number)
    assert whole
    found = of_everybody().archived(whole)
    assert SECRET not in f"{found.exception_message} {found.stack_trace} {found.details} {found.headers}"
    MaskingRule.objects.update(types=["Shop.Other"])
    told = [path for path in pages if SECRET in shown(looked_at.viewer, path)]
    assert told == pages[:4], "trials know the first type alone"


def test_a_rule_of_any_of_its_types_holds_in_history(looked_at: Recorded) -> None:
    headers = json.dumps({"NServiceBus.EnclosedMessageTypes": "Shop.Pay, S;Shop.IHaveCard, S"})
    said: dict[str, Any] = {**dict.fromkeys(FIELDS), "type": "Shop.Pay", "exception_message": SECRET}
    kept = FinishedMessage(**said, source="audit", seq=1, result="failed", ended_at=database_clock.now(), body_bytes=0)
    MaskingRule.objects.create(name="Card", kind="regex", pattern=SECRET, types=["Shop.IHaveCard"])
    for each in (kept, replace(kept, headers=headers)):
        assert of_everybody().finished(each).exception_message == "⟦masked: Card⟧"
    MaskingRule.objects.update(types=["Shop.Other"])
    assert of_everybody().finished(replace(kept, headers=headers)).exception_message == SECRET


TWICE = (
    ({"kind": "regex", "pattern": SECRET}, f'{{"A":"{SECRET}","A":"ok"}}'),
    ({"kind": "regex", "pattern": SECRET}, f'{{"A":{{"x":"{SECRET}"}},"A":"ok"}}'),
    ({"kind": "header", "pattern": "Shop.Card"}, f'{{"Shop.Card":"{SECRET}","Shop.Card":null}}'),
)


@pytest.mark.parametrize(("rule", "headers"), TWICE)
def test_of_a_header_that_stands_there_twice_no_value_is_shown(looked_at: Recorded, rule: Any, headers: str) -> None:
    dead = DeadMessage(queue='"public"."Sales"', exception_type="Shop.Twice", headers=headers)
    store.archive_failed(looked_at.connection, dead)
    number = looked_at.connection.value("select max(id) from messages.message_archive")
    whole = store.show(looked_at.connection, number)
    assert whole
    waiting = StoredMessage(uuid4(), False, headers, len(headers), 0)
    MaskingRule.objects.create(name="Card", **rule)
    assert SECRET not in str(of_everybody().archived(whole).headers)
    assert SECRET not in str(of_everybody().stored(waiting).headers_text)
    assert SECRET not in shown(looked_at.viewer, f"/archive/{number}/")
    assert looked_at.viewer.get(f"/archive/{number}/headers/").status_code == 403


def test_headers_that_hide_nothing_are_a_file_however_they_are_written(looked_at: Recorded) -> None:
    headers = '{ "A" : "a/b",  "B": null }'
    dead = DeadMessage(queue='"public"."Sales"', exception_type="Shop.Spaces", headers=headers)
    store.archive_failed(looked_at.connection, dead)
    number = looked_at.connection.value("select max(id) from messages.message_archive")
    MaskingRule.objects.create(name="Card", kind="regex", pattern=SECRET)
    assert looked_at.viewer.get(f"/archive/{number}/headers/").status_code == 200
