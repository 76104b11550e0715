"""An act on many: frozen, reviewed, started, done, each message with its outcome; all with scripts off (C4)."""

import re
from html import unescape

import pytest
from django.template.loader import render_to_string
from django.urls import reverse
from pytest_django import Settings

from pgqueue_admin.console.operations import live_progress
from pgqueue_admin.console.operations.plain_progress import OperationProgress
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, Queue, RetryRule
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.operations import runner, single
from tests import strangers_code
from tests.console.operating import choose, follow, start
from tests.console.pages import Connect, matched, shown
from tests.console.recorded import REFUSED, Recorded
from tests.waiting import until


def test_from_tick_to_outcome(recorded: Recorded, cards: list[int]) -> None:
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

    waiting = follow(recorded.operator, start(recorded.operator, frozen["Location"]))
    assert "Cancel the remaining" in waiting
    assert "Refresh" in waiting

    runner.run(Operation.objects.get().pk)
    ended = shown(recorded.operator, frozen["Location"])
    assert "5 retried." in ended
    assert ended.count("into <span") == 5
    assert recorded.rows("Billing") == before + 5
    assert AuditEntry.objects.get(verb="retry").count == 5


def test_a_frozen_set_skips_what_somebody_else_did(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    single.act("discard", cards[0], "tomas", "console")
    assert "1 changed since the freeze, by tomas" in shown(recorded.operator, frozen["Location"])
    start(recorded.operator, frozen["Location"])
    runner.run(Operation.objects.earliest("pk").pk)
    recorded.operator.cookies["zone"] = "Asia/Tokyo"
    html = shown(recorded.operator, f"{frozen['Location']}?o=skipped")
    assert "4 retried, 1 skipped" in html
    assert re.search(r"by tomas at [\d-]+ [\d:]+ JST", html)


def test_operation_that_lost_its_items_says_so(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    with queue_database().write_session() as connection:
        connection.run("delete from messages.operation_item where position > 2")
    runner.run(Operation.objects.get().pk)
    html = shown(recorded.operator, frozen["Location"])
    for said in ("It ended early.", "3 of its 5 messages are in its set no more", "cancelled by the console"):
        assert said in html
    assert "2 retried, 3 not touched and still dead where they were." in html


def test_a_second_start_is_told_who_was_first(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    html = follow(recorded.second, start(recorded.second, frozen["Location"]))
    assert "Nothing more was retried: ana started operation" in html


def test_all_that_match_are_frozen_by_the_search(recorded: Recorded) -> None:
    frozen = choose(recorded.operator, "discard", all="matching", q="error:RefusedException state:dead")
    operation = Operation.objects.get()
    assert operation.count == len(recorded.dead(1000, exception=REFUSED))
    assert operation.selection == "error:RefusedException state:dead"
    assert "error:RefusedException state:dead" in shown(recorded.operator, frozen["Location"])


def test_a_wrong_search_freezes_nothing(recorded: Recorded) -> None:
    response = choose(recorded.operator, "discard", all="matching", q="age:>1hh")
    assert response["Location"] == "/archive/?q=state:dead"
    assert "Nothing was discarded: age:&gt;1hh" in shown(recorded.operator, response["Location"])
    assert not Operation.objects.exists()


def test_many_ask_for_a_reason_and_discarding_hundreds_for_the_count(recorded: Recorded) -> None:
    many = choose(recorded.operator, "discard", recorded.dead(120))
    address = many["Location"]
    without = start(recorded.operator, address)
    assert without.status_code == 422
    assert "a reason is asked for" in without.content.decode()
    mistyped = start(recorded.operator, address, reason="cleaning", count="12")
    assert "The set has 120 messages, you typed 12." in mistyped.content.decode()
    assert Operation.objects.get().state == "frozen"
    assert start(recorded.operator, address, reason="cleaning", count="120").status_code == 303
    assert Operation.objects.get().state == "waiting"


def test_discards_of_an_operation_can_be_restored_together(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    runner.run(Operation.objects.get().pk)
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore all 5" in html
    again = choose(recorded.operator, "restore", all="matching", q=matched(r'name="q" value="([^"]+)"', html))
    start(recorded.operator, again["Location"])
    runner.run(Operation.objects.latest("pk").pk)
    assert {recorded.state(each) for each in cards} == {"dead"}
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore" not in html
    listed = unescape(matched(r'<a href="([^"]*)">5\s+dead</a>', html))
    assert {f'value="{each}"' in shown(recorded.operator, listed) for each in cards} == {True}


def test_restore_takes_only_messages_still_as_the_operation_left_them(recorded: Recorded, cards: list[int]) -> None:
    """One was restored since, and another was restored and discarded again by somebody else."""
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    runner.run(Operation.objects.get().pk)
    for card in cards[:2]:
        single.act("restore", card, "tomas", "console")
    single.act("discard", cards[1], "tomas", "console")
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore the 3 still discarded" in html
    again = choose(recorded.operator, "restore", all="matching", q=matched(r'name="q" value="([^"]+)"', html))
    assert Operation.objects.latest("pk").count == 3
    start(recorded.operator, again["Location"])
    runner.run(Operation.objects.latest("pk").pk)
    assert [recorded.state(each) for each in cards] == ["dead", "discarded", "dead", "dead", "dead"]


def test_cancelling_leaves_the_rest_as_it_is(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    runner.run_chunk(Operation.objects.get().pk, size=2)
    html = follow(recorded.operator, recorded.operator.post(f"{frozen['Location']}cancel/"))
    assert "2 retried, 3 not touched and still dead where they were" in html
    assert sorted(recorded.state(each) for each in cards) == ["dead"] * 3 + ["retried"] * 2


def test_the_result_of_a_cancel_waits_for_what_is_in_hand(
    recorded: Recorded, cards: list[int], connect: Connect
) -> None:
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    operation = Operation.objects.get()
    runner.run_chunk(operation.pk, size=2)
    worker = connect(recorded.dsn)
    with worker.transaction():
        worker.run(postgresql().operation.begin_chunk(), {"operation_id": operation.pk})
        html = follow(recorded.operator, recorded.operator.post(f"{frozen['Location']}cancel/"))
        assert html.count("Cancelled; messages in hand are finished first.") == 2
        assert 'id="going-on"' in html
        assert "Restore all" not in html
        assert "not touched and still dead" not in html
        assert live_progress.live(str(operation.pk))["@say"] == ""
    ended = shown(recorded.operator, frozen["Location"])
    assert "2 discarded, 3 not touched and still dead." in ended
    assert "Restore all 2" in ended


def test_open_page_counts_the_messages_left_to_cancel(recorded: Recorded, cards: list[int], settings: Settings) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    html = follow(recorded.operator, start(recorded.operator, frozen["Location"]))
    number = str(Operation.objects.get().pk)
    assert (
        f"Cancel the rest of operation {number}, Retry 5 messages to Billing, in {settings.PGQUEUE['ENVIRONMENT']}?"
        in html
    )
    assert html.count(f'Cancel the remaining <span data-live="op.{number}.left">5</span>') == 2
    runner.run_chunk(int(number), size=2)
    told = live_progress.live(number)
    assert (told[f"op.{number}.left"], told[f"op.{number}.acts"]) == ("3", "b bad")
    runner.run(int(number))
    told = live_progress.live(number)
    assert (told[f"op.{number}.left"], told[f"op.{number}.acts"]) == ("0", "off")


def test_a_viewer_freezes_and_starts_nothing(recorded: Recorded, cards: list[int]) -> None:
    response = choose(recorded.viewer, "retry", cards)
    assert (
        "Nothing was retried: needs the right “Can retry dead messages”, which an administrator gives in Django admin"
        in shown(recorded.viewer, response["Location"])
    )
    frozen = choose(recorded.operator, "retry", cards)
    assert "needs the right “Can retry dead messages”, which an administrator gives in Django admin" in shown(
        recorded.viewer, frozen["Location"]
    )
    start(recorded.viewer, frozen["Location"])
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
def test_odd_choices_are_refused_in_words(recorded: Recorded, given: dict[str, str | list[str]], said: str) -> None:
    response = recorded.operator.post("/operations/", given)
    assert said in follow(recorded.operator, response)
    assert not Operation.objects.exists()


def test_the_list(recorded: Recorded, cards: list[int]) -> None:
    assert "No operation yet" in shown(recorded.operator, reverse("operations"))
    choose(recorded.operator, "retry", cards)
    html = shown(recorded.operator, reverse("operations"))
    assert "Retry 5 messages to Billing" in html
    assert recorded.operator.get("/operations/999/").status_code == 404


def test_an_open_page_is_told_of_progress(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    number = str(Operation.objects.get().pk)
    start(recorded.operator, frozen["Location"])
    assert live_progress.live(number)["@say"] == ""
    runner.run(int(number))
    told = live_progress.live(number)
    assert "5 retried" in told["@say"]
    assert "5 retried" in told[f"op.{number}.progress"]
    assert live_progress.live("999") == live_progress.live("x") == {}


@pytest.mark.parametrize(
    ("acted", "said"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((500, 2, 1), 50), ((900, 90, 6), 99), ((990, 6, 4), 100)]
)
def test_per_cent_are_all_only_when_all_are_acted_on(acted: tuple[int, int, int], said: int) -> None:
    done, skipped, failed = acted
    assert OperationProgress(Operation(count=1000, done=done, skipped=skipped, failed=failed)).percent == said


@pytest.mark.parametrize(
    ("stays", "said"),
    [
        (None, "received meanwhile, or in flight"),
        (0, "received meanwhile<"),
        (2, "2 stay in the queue: in flight, or with a value that the archive has no place for; the rest was received"),
        (3, "3 stay in the queue: in flight, or with a value that the archive has no place for<"),
    ],
)
def test_a_purge_says_what_stays_apart_from_what_was_received(stays: int | None, said: str) -> None:
    operation = Operation(pk=1, kind="purge", state="done", count=10, done=7, skipped=3, stays=stays)
    about = {"operation": operation, "progress": OperationProgress(operation)}
    assert said in render_to_string("pgqueue_admin/operations/progress.html", about)


def test_looking_starts_nothing(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    for address in (f"{frozen['Location']}start/", f"{frozen['Location']}cancel/"):
        assert recorded.operator.get(address).status_code == 405
    shown(recorded.operator, frozen["Location"])
    assert Operation.objects.get().state == "frozen"


def test_a_role_that_only_selects_disables_acts_and_says_so(recorded: Recorded, cards: list[int]) -> None:
    from django.db import connections

    from pgqueue_admin.models import database_role

    name = "looks_only"
    recorded.connection.run(f"create role {name} login password 'looks'; grant pg_read_all_data to {name}")
    entry = connections["queues"].settings_dict
    before = {key: entry[key] for key in ("USER", "PASSWORD")}
    entry.update(USER=name, PASSWORD="looks")
    try:
        until(database_role.current, what="the database was asked")
        for address in ("/archive/", f"/archive/{cards[0]}/", "/queues/public/Sales/messages/"):
            assert 'name="act"' not in shown(recorded.operator, address)
        assert "may only SELECT" in shown(recorded.operator, "/archive/")
        response = choose(recorded.operator, "retry", cards)
        assert "Nothing was retried" in shown(recorded.operator, response["Location"])
    finally:
        entry.update(before)
        queue_databases.close()
        recorded.connection.run(f"drop owned by {name}; drop role {name}")
    assert not Operation.objects.exists()
    assert {recorded.state(each) for each in cards} == {"dead"}


def test_waiting_messages_are_called_back_from_the_retrys_page(recorded: Recorded, cards: list[int]) -> None:
    before = recorded.rows("Billing")
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    runner.run(Operation.objects.get().pk)
    assert "Call back 5 that still wait…" in shown(recorded.operator, frozen["Location"])
    assert "needs the right" in shown(recorded.viewer, frozen["Location"]).split("Call back 5")[1][:900]

    with strangers_code.put_into_billing(recorded.connection, "index"):
        assert "Call back what still waits…" in shown(recorded.operator, frozen["Location"]), "it is not looked into"

    asked = {"act": "call back", "operation": str(Operation.objects.get().pk)}
    back = recorded.operator.post("/operations/", asked)
    preview = follow(recorded.operator, back)
    assert "Call back 5 messages from Billing in" in preview
    assert "no receiver waits" in preview
    assert recorded.rows("Billing") == before + 5
    start(recorded.operator, back["Location"])
    runner.run(Operation.objects.latest("pk").pk)
    assert recorded.rows("Billing") == before
    assert "5 called back." in shown(recorded.operator, back["Location"])
    sent = shown(recorded.operator, f"{frozen['Location']}?o=skipped")
    assert sent.count("Called back by ana, operation") == 5
    assert "that still wait" not in sent
    refused = recorded.operator.post("/operations/", asked, follow=True)
    assert "nothing is known to wait" in refused.content.decode()


def test_a_queue_is_purged_from_its_page_by_typing_the_count(recorded: Recorded) -> None:
    about = {"kind": "input", "acts_allowed": True}
    Queue.objects.update_or_create(schema="public", table="Billing", defaults=about)
    before = recorded.rows("Billing")
    page = shown(recorded.operator, "/queues/public/Billing/")
    assert "Purge…" in page
    assert "needs the right" in shown(recorded.viewer, "/queues/public/Billing/").split("Purge…")[1][:400]
    frozen = recorded.operator.post("/operations/", {"act": "purge", "schema": "public", "table": "Billing"})
    preview = follow(recorded.operator, frozen)
    assert f"Purge {before:,} messages of Billing in" in preview
    assert f"Type the count, {before:,}, to go on" in preview
    assert "Messages that arrived since stay" in preview
    wrong = start(recorded.operator, frozen["Location"], count="1", reason="flood")
    assert wrong.status_code == 422
    start(recorded.operator, frozen["Location"], count=str(before), reason="flood")
    runner.run(Operation.objects.get().pk)
    ended = shown(recorded.operator, frozen["Location"])
    assert f"{before:,} purged." in ended
    assert f"Restore all {before:,}…" in ended
    assert recorded.rows("Billing") == 0
    refused = recorded.operator.post("/operations/", {"act": "purge", "schema": "no\0", "table": "x"}, follow=True)
    assert "Nothing was purged." in refused.content.decode()


V2 = '"public"."Billing.V2"'


def test_a_retry_shows_what_a_rule_would_do_before_it_starts(recorded: Recorded, cards: list[int]) -> None:
    recorded.connection.run('create table "Billing.V2" (like "Billing" including all)')
    Queue.objects.create(schema="public", table="Billing.V2", kind="input")
    rules = "/settings/retry-rules/"
    assert "No rule yet" in shown(recorded.viewer, rules)
    kept = {"queue": '"public"."Billing"', "target": V2, "reason": "renamed"}
    assert recorded.viewer.post(rules, kept).status_code == 403
    assert recorded.operator.post(rules, {**kept, "target": "nothing"}).status_code == 422
    assert "Billing.V2" in follow(recorded.operator, recorded.operator.post(rules, kept))

    number = RetryRule.objects.get().pk
    assert "Retry by a rule…" in shown(recorded.operator, f"/archive/{cards[0]}/")
    at_once = choose(recorded.operator, "retry", cards[:1], at_once="yes")
    assert "1 of 1" in follow(recorded.operator, at_once), "nothing is sent elsewhere unseen"
    frozen = choose(recorded.operator, "retry", cards)
    preview = re.sub(r"\s+", " ", unescape(follow(recorded.operator, frozen)))
    assert f"5 of 5 go to {V2} by rule {number}" in preview
    start(recorded.operator, frozen["Location"], rule=str(number))
    runner.run(Operation.objects.latest("pk").pk)
    assert recorded.rows("Billing.V2") == 5
    ended = shown(recorded.operator, frozen["Location"])
    assert f"Rule {number}</dt>" in ended
    assert "Retry 5 messages to Billing.V2" in ended

    assert "needs the right" in shown(recorded.viewer, rules)
    removed = recorded.operator.post(f"{rules}{number}/remove/")
    assert "No rule yet" in follow(recorded.operator, removed)
    assert AuditEntry.objects.filter(noun="retry rule").count() == 2


def test_a_message_is_copied_from_its_page(recorded: Recorded, cards: list[int]) -> None:
    about = {"kind": "input", "acts_allowed": True}
    Queue.objects.update_or_create(schema="public", table="Billing", defaults=about)
    before, place = recorded.rows("Billing"), f"/archive/{cards[0]}/"
    assert f"{place}copy/" in shown(recorded.operator, place)
    assert "Send 1 copy in" in shown(recorded.operator, f"{place}copy/")
    done = follow(recorded.operator, recorded.operator.post(f"{place}copy/", {"target": '"public"."Billing"'}))
    assert "The original stays as it is." in done
    assert "Copied by ana, as a new message" in done
    assert recorded.rows("Billing") == before + 1
    assert recorded.viewer.post(f"{place}copy/", {"target": '"public"."Billing"'}).status_code == 403
    assert recorded.operator.post(f"{place}copy/", {"target": '"pg_catalog"."pg_class"'}).status_code == 422
    row_id = recorded.connection.value('select id from "Billing" order by seq limit 1')
    waits = f"/queues/public/Billing/messages/{row_id}/"
    assert f"{waits}copy/" in shown(recorded.operator, waits)
    assert recorded.operator.post(f"{waits}copy/", {"target": '"public"."Billing"'}).status_code == 303
    assert recorded.rows("Billing") == before + 2


def test_its_entries_in_the_audit_are_one_click_away(recorded: Recorded, cards: list[int]) -> None:
    address = choose(recorded.operator, "discard", cards)["Location"]
    start(recorded.operator, address)
    there = matched(r'<a href="(/audit/[^"]+)">Its entries in the audit</a>', shown(recorded.operator, address))
    assert shown(recorded.operator, there).count('data-l="Who"') == 1
