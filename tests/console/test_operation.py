"""An act on many: frozen, looked at, started, done, each with its outcome; all of it with scripts off (C4)."""

import re

import pytest
from django.urls import reverse

from pgqueue_admin.operations import service
from pgqueue_admin.records.models import AuditEntry, Operation
from tests.console.recorded import REFUSED
from tests.waiting import until


@pytest.fixture
def cards(recorded):
    return recorded.dead(5, exception=REFUSED)


def choose(client, kind, ids=(), **more):
    return client.post("/operations/", {"act": kind, "id": list(ids), "next": "/archive/?q=state:dead", **more})


def text(client, address):
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def follow(client, response):
    assert response.status_code == 303
    return text(client, response.url)


def start(client, address, **given):
    return client.post(f"{address}start/", given)


def test_from_tick_to_outcome(recorded, cards):
    before = recorded.rows("Billing")
    frozen = choose(recorded.operator, "retry", cards)
    preview = follow(recorded.operator, frozen)
    for said in (
        "Retry 5 messages to Billing in",
        "frozen, nothing done yet",
        "What changes in each",
        "NServiceBus.FailedQ",
    ):
        assert said in preview
    assert recorded.rows("Billing") == before

    waiting = follow(recorded.operator, start(recorded.operator, frozen.url))
    assert "Cancel the remaining 5" in waiting
    assert "Look again" in waiting

    service.run(Operation.objects.get().pk)
    ended = text(recorded.operator, frozen.url)
    assert "5 retried." in ended
    assert ended.count("into <span") == 5
    assert recorded.rows("Billing") == before + 5
    assert AuditEntry.objects.get(verb="retry").count == 5


def test_a_frozen_set_skips_what_somebody_else_did(recorded, cards):
    frozen = choose(recorded.operator, "retry", cards)
    service.act("discard", cards[0], "tomas", "console")
    assert "1 changed since the freeze: tomas was quicker" in text(recorded.operator, frozen.url)
    start(recorded.operator, frozen.url)
    service.run(Operation.objects.order_by("pk").first().pk)
    html = text(recorded.operator, f"{frozen.url}?o=skipped")
    assert "4 retried, 1 skipped" in html
    assert "by tomas at" in html


def test_a_second_start_is_told_who_was_first(recorded, cards):
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen.url)
    html = follow(recorded.second, start(recorded.second, frozen.url))
    assert "Nothing more was retried: ana started operation" in html


def test_all_that_match_are_frozen_by_the_search(recorded):
    frozen = choose(recorded.operator, "discard", all="matching", q="error:RefusedException state:dead")
    operation = Operation.objects.get()
    assert operation.count == len(recorded.dead(1000, exception=REFUSED))
    assert operation.selection == "error:RefusedException state:dead"
    assert "error:RefusedException state:dead" in text(recorded.operator, frozen.url)


def test_a_wrong_search_freezes_nothing(recorded):
    response = choose(recorded.operator, "discard", all="matching", q="age:>1hh")
    assert response.url == "/archive/?q=state:dead"
    assert "Nothing was discarded: age:&gt;1hh" in text(recorded.operator, response.url)
    assert not Operation.objects.exists()


def test_many_ask_for_a_reason_and_discarding_hundreds_for_the_count(recorded):
    many = choose(recorded.operator, "discard", recorded.dead(120))
    address = many.url
    without = start(recorded.operator, address)
    assert without.status_code == 422
    assert "a reason is asked for" in without.content.decode()
    mistyped = start(recorded.operator, address, reason="cleaning", count="12")
    assert "The set has 120 messages, you typed 12." in mistyped.content.decode()
    assert Operation.objects.get().state == "frozen"
    assert start(recorded.operator, address, reason="cleaning", count="120").status_code == 303
    assert Operation.objects.get().state == "waiting"


def test_discards_of_an_operation_can_be_restored_together(recorded, cards):
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen.url)
    service.run(Operation.objects.get().pk)
    html = text(recorded.operator, frozen.url)
    assert "Restore all 5" in html
    again = choose(recorded.operator, "restore", all="matching", q=re.search(r'name="q" value="([^"]+)"', html)[1])
    start(recorded.operator, again.url)
    service.run(Operation.objects.order_by("-pk").first().pk)
    assert {recorded.state(each) for each in cards} == {"dead"}


def test_cancelling_leaves_the_rest_as_it_is(recorded, cards):
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen.url)
    service.run_chunk(Operation.objects.get().pk, size=2)
    html = follow(recorded.operator, recorded.operator.post(f"{frozen.url}cancel/"))
    assert "2 retried, 3 not touched and still dead where they were" in html
    assert sorted(recorded.state(each) for each in cards) == ["dead"] * 3 + ["retried"] * 2


def test_leaving_a_frozen_set(recorded, cards):
    frozen = choose(recorded.operator, "retry", cards)
    html = follow(recorded.operator, recorded.operator.post(f"{frozen.url}cancel/"))
    assert "Nothing was done." in html


def test_messages_whose_queue_is_gone_are_told_before(recorded, cards):
    recorded.connection.run('drop table "Billing" cascade')
    html = follow(recorded.operator, choose(recorded.operator, "retry", cards))
    assert "is no queue" in html


def test_a_viewer_freezes_and_starts_nothing(recorded, cards):
    response = choose(recorded.viewer, "retry", cards)
    assert "Nothing was retried: needs operator" in text(recorded.viewer, response.url)
    frozen = choose(recorded.operator, "retry", cards)
    assert "needs operator" in text(recorded.viewer, frozen.url)
    start(recorded.viewer, frozen.url)
    assert Operation.objects.get().state == "frozen"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"act": "retry"}, "no message was ticked"),
        ({"act": "explode", "id": "1"}, "choose retry, discard or restore"),
        ({"act": "retry", "id": ["x", "-1", "9" * 20]}, "no message was ticked"),
        ({"act": "retry", "id": "999999999"}, "No message matches"),
    ],
)
def test_odd_choices_are_refused_in_words(recorded, given, said):
    response = recorded.operator.post("/operations/", given)
    assert said in follow(recorded.operator, response)
    assert not Operation.objects.exists()


def test_the_list(recorded, cards):
    assert "No operation yet" in text(recorded.operator, reverse("operations"))
    choose(recorded.operator, "retry", cards)
    html = text(recorded.operator, reverse("operations"))
    assert "Retry 5 messages to Billing" in html
    assert recorded.operator.get("/operations/999/").status_code == 404


def test_an_open_page_is_told_of_progress(recorded, cards):
    from pgqueue_admin.console.operation import progress

    frozen = choose(recorded.operator, "retry", cards)
    number = str(Operation.objects.get().pk)
    start(recorded.operator, frozen.url)
    assert progress.live(number)["@say"] == ""
    service.run(int(number))
    told = progress.live(number)
    assert "5 retried" in told["@say"]
    assert "5 retried" in told[f"op.{number}.progress"]
    assert progress.live("999") == progress.live("x") == {}


def test_looking_starts_nothing(recorded, cards):
    frozen = choose(recorded.operator, "retry", cards)
    for address in (f"{frozen.url}start/", f"{frozen.url}cancel/"):
        assert recorded.operator.get(address).status_code == 405
    text(recorded.operator, frozen.url)
    assert Operation.objects.get().state == "frozen"


def test_a_role_that_only_selects_disables_acts_and_says_so(recorded, cards):
    from django.db import connections

    from pgqueue_admin.records import role, source

    name = "looks_only"
    recorded.connection.run(f"create role {name} login password 'looks'; grant pg_read_all_data to {name}")
    entry = connections["queues"].settings_dict
    before = {key: entry[key] for key in ("USER", "PASSWORD")}
    entry.update(USER=name, PASSWORD="looks")
    try:
        until(role.current, what="the database was asked")
        for address in ("/archive/", f"/archive/{cards[0]}/", "/queues/public/Sales/messages/"):
            assert 'name="act"' not in text(recorded.operator, address)
        assert "may only SELECT" in text(recorded.operator, "/archive/")
        response = choose(recorded.operator, "retry", cards)
        assert "Nothing was retried" in text(recorded.operator, response.url)
    finally:
        entry.update(before)
        source.close()
        recorded.connection.run(f"drop owned by {name}; drop role {name}")
    assert not Operation.objects.exists()
    assert {recorded.state(each) for each in cards} == {"dead"}
