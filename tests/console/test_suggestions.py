"""Suggestions while a search is typed: fields and existing names, never what the user may not search."""

import re
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from pgqueue_admin.console.archive import suggestions
from pgqueue_admin.models import MaskingRule
from tests.console.recorded import Recorded
from tests.console.sampled import sample


@pytest.fixture(scope="module")
def known(looked_at: Recorded) -> Recorded:
    sample()
    return looked_at


def suggested(client: Client, typed: str, **more: str) -> list[str]:
    answer = client.get("/archive/suggestions/", {"q": typed, **more})
    assert answer.status_code == 200
    return [unescape(each) for each in re.findall(r'<option value="([^"]*)"', answer.content.decode())]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("st", "st" "ate:"), ("state:de", "state:dead"), ("queue:A -(Sta", "queue:A -(state:"),
        ("x OR -state:dead_", "x OR -state:dead_again"), ("hea", "headers:"), ("header", "headers:"),
        ("queue:sal", "queue:Sales"), ("type:char", "type:ChargeCard"), ("type:Shop.", "type:Shop."),
        ("error:refus", "error:RefusedException"), ("died:y", "died:yesterday"), ("Result:un", "result:unsuccessful"),
    ],
)  # fmt: skip
def test_the_last_term_is_gone_on_with(known: Recorded, typed: str, first: str) -> None:
    assert suggested(known.operator, typed)[0].startswith(first)


def test_every_suggestion_finds_something(known: Recorded) -> None:
    for typed in ("type:", "error:", "endpoint:", "type:c"):
        found = suggested(known.operator, typed)
        assert found, typed
        for q in found:
            assert 'name="id"' in known.operator.get("/archive/", {"q": q}).content.decode(), q


@pytest.mark.parametrize("typed", ["", " ", '"an open', 'type:"a', "nope:x", "state:retried", "plain ", "(" * 99])
def test_where_nothing_fits_nothing_is_suggested(known: Recorded, typed: str) -> None:
    assert suggested(known.operator, typed) == []


def test_suggestions_are_limited_in_number(known: Recorded) -> None:
    assert 0 < len(suggested(known.operator, "queue:")) <= suggestions.MOST


def test_fields_that_need_the_read_right_are_not_suggested(known: Recorded) -> None:
    assert suggested(known.counter, "hea") == suggested(known.counter, "bod") == suggested(known.counter, "mes") == []
    assert suggested(known.counter, "ty") == ["type:"]
    rule = MaskingRule.objects.create(name="Card", kind="regex", pattern="[0-9]{16}")
    try:
        reader = known.signed_in("rita", Permission.objects.filter(codename="read_message"))
        assert suggested(reader, "bod") == []
    finally:
        rule.delete()


def test_suggestions_for_waiting_messages_are_their_fields(known: Recorded) -> None:
    assert suggested(known.operator, "s", of="waiting") == ["sent:", "size:", "seq:"]
    assert suggested(known.operator, "fp", of="waiting") == suggested(known.operator, "state:d", of="waiting") == []
    assert suggested(known.operator, "is:", of="waiting") == ["is:expired"]


def test_suggestions_for_the_lease_queue_have_its_fields(known: Recorded) -> None:
    assert suggested(known.operator, "-h", of="leases") == ["-holder:"]
    assert suggested(known.operator, "is:", of="leases") == ["is:waiting", "is:locked", "is:expired", "is:later"]
    assert suggested(known.counter, "bo", of="leases") == []


def test_the_box_on_top_knows_queues_beside_terms(known: Recorded) -> None:
    assert suggested(known.operator, "sal", of="everywhere")[0] == "Sales"
    assert "state:" in suggested(known.operator, "s", of="everywhere")
    assert suggested(known.operator, "x sal", of="everywhere") == suggested(known.operator, "sal") == []
    assert suggested(known.operator, "queue:sal", of="everywhere")[0] == "queue:Sales"
    assert known.operator.get("/messages/", {"q": "Sales"})["Location"] == "/queues/public/Sales/"
    html = known.operator.get("/").content.decode()
    box = re.search(r'<input id="q".*?>', html, re.DOTALL)
    assert box
    assert 'list="everywhere"' in box[0]
    assert 'hx-get="/archive/suggestions/?of=everywhere"' in box[0]
    assert '<datalist id="everywhere"></datalist>' in html
    assert 'list="known"' in known.operator.get("/messages/").content.decode()


def test_strangers_are_told_nothing(known: Recorded) -> None:
    assert Client().get("/archive/suggestions/?q=queue:s").status_code == 302


@pytest.mark.parametrize("path", ["/archive/", "/queues/public/Sales/messages/"])
def test_the_box_has_its_list(known: Recorded, path: str) -> None:
    html = known.operator.get(path).content.decode()
    box = re.search(r'<input id="[am]q".*?>', html, re.DOTALL)
    assert box
    assert 'list="known"' in box[0]
    assert 'hx-get="/archive/suggestions/' in box[0]
    assert '<datalist id="known"></datalist>' in html
