"""An act on many: frozen, looked at, started, done, each with its outcome; all of it with scripts off (C4)."""

import re
from html import unescape

import pytest
from django.urls import reverse
from pytest_django import Settings

from pgqueue_admin.console.operations import progress
from pgqueue_admin.console.operations.operation_progress import OperationProgress
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import operations
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

    operations.run(Operation.objects.get().pk)
    ended = shown(recorded.operator, frozen["Location"])
    assert "5 retried." in ended
    assert ended.count("into <span") == 5
    assert recorded.rows("Billing") == before + 5
    assert AuditEntry.objects.get(verb="retry").count == 5


def test_a_frozen_set_skips_what_somebody_else_did(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    operations.act("discard", cards[0], "tomas", "console")
    assert "1 changed since the freeze: tomas was quicker" in shown(recorded.operator, frozen["Location"])
    start(recorded.operator, frozen["Location"])
    operations.run(Operation.objects.earliest("pk").pk)
    recorded.operator.cookies["zone"] = "Asia/Tokyo"
    html = shown(recorded.operator, f"{frozen['Location']}?o=skipped")
    assert "4 retried, 1 skipped" in html
    assert re.search(r"by tomas at [\d-]+ [\d:]+ JST", html)


def test_one_that_lost_its_set_says_so(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    with queue_database().writing() as connection:
        connection.run("delete from messages.operation_item where place > 2")
    operations.run(Operation.objects.get().pk)
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
    operations.run(Operation.objects.get().pk)
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore all 5" in html
    again = choose(recorded.operator, "restore", all="matching", q=matched(r'name="q" value="([^"]+)"', html))
    start(recorded.operator, again["Location"])
    operations.run(Operation.objects.latest("pk").pk)
    assert {recorded.state(each) for each in cards} == {"dead"}
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore" not in html
    listed = unescape(matched(r'<a href="([^"]*)">5\s+dead</a>', html))
    assert {f'value="{each}"' in shown(recorded.operator, listed) for each in cards} == {True}


def test_those_alone_are_restored_that_are_as_the_operation_left_them(recorded: Recorded, cards: list[int]) -> None:
    """One was restored since, and another one discarded anew by somebody else."""
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    operations.run(Operation.objects.get().pk)
    for card in cards[:2]:
        operations.act("restore", card, "tomas", "console")
    operations.act("discard", cards[1], "tomas", "console")
    html = shown(recorded.operator, frozen["Location"])
    assert "Restore the 3 still discarded" in html
    again = choose(recorded.operator, "restore", all="matching", q=matched(r'name="q" value="([^"]+)"', html))
    assert Operation.objects.latest("pk").count == 3
    start(recorded.operator, again["Location"])
    operations.run(Operation.objects.latest("pk").pk)
    assert [recorded.state(each) for each in cards] == ["dead", "discarded", "dead", "dead", "dead"]


def test_cancelling_leaves_the_rest_as_it_is(recorded: Recorded, cards: list[int]) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    start(recorded.operator, frozen["Location"])
    operations.run_chunk(Operation.objects.get().pk, size=2)
    html = follow(recorded.operator, recorded.operator.post(f"{frozen['Location']}cancel/"))
    assert "2 retried, 3 not touched and still dead where they were" in html
    assert sorted(recorded.state(each) for each in cards) == ["dead"] * 3 + ["retried"] * 2


def test_the_result_of_a_cancel_waits_for_what_is_in_hand(
    recorded: Recorded, cards: list[int], connect: Connect
) -> None:
    frozen = choose(recorded.operator, "discard", cards)
    start(recorded.operator, frozen["Location"])
    operation = Operation.objects.get()
    operations.run_chunk(operation.pk, size=2)
    worker = connect(recorded.dsn)
    with worker.transaction():
        worker.run(postgresql().operation.begin_chunk(), {"operation_id": operation.pk})
        html = follow(recorded.operator, recorded.operator.post(f"{frozen['Location']}cancel/"))
        assert html.count("Cancelled; what is in hand is finished first.") == 2
        assert 'id="going-on"' in html
        assert "Restore all" not in html
        assert "not touched and still dead" not in html
        assert progress.live(str(operation.pk))["@say"] == ""
    ended = shown(recorded.operator, frozen["Location"])
    assert "2 discarded, 3 not touched and still dead." in ended
    assert "Restore all 2" in ended


def test_what_is_left_to_cancel_is_counted_on_an_open_page(
    recorded: Recorded, cards: list[int], settings: Settings
) -> None:
    frozen = choose(recorded.operator, "retry", cards)
    html = follow(recorded.operator, start(recorded.operator, frozen["Location"]))
    number = str(Operation.objects.get().pk)
    assert (
        f"Cancel the rest of operation {number}, Retry 5 messages to Billing, in {settings.PGQUEUE['ENVIRONMENT']}?"
        in html
    )
    assert html.count(f'Cancel the remaining <span data-live="op.{number}.left">5</span>') == 2
    operations.run_chunk(int(number), size=2)
    told = progress.live(number)
    assert (told[f"op.{number}.left"], told[f"op.{number}.acts"]) == ("3", "b bad")
    operations.run(int(number))
    told = progress.live(number)
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
    assert progress.live(number)["@say"] == ""
    operations.run(int(number))
    told = progress.live(number)
    assert "5 retried" in told["@say"]
    assert "5 retried" in told[f"op.{number}.progress"]
    assert progress.live("999") == progress.live("x") == {}


@pytest.mark.parametrize(
    ("acted", "said"), [((0, 0, 0), 0), ((1, 0, 0), 1), ((500, 2, 1), 50), ((900, 90, 6), 99), ((990, 6, 4), 100)]
)
def test_per_cent_are_all_only_when_all_are_acted_on(acted: tuple[int, int, int], said: int) -> None:
    done, skipped, failed = acted
    assert OperationProgress(Operation(count=1000, done=done, skipped=skipped, failed=failed)).percent == said


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
