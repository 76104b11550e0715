"""An open message page is updated when the message changes elsewhere (C4)."""

from collections.abc import Mapping
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from pgqueue_admin.live import topics
from pgqueue_admin.models import Queue
from pgqueue_admin.services.operations import single
from tests.archived_messages import succeed
from tests.console.pages import matched, shown
from tests.console.recorded import Recorded
from tests.console.sampled import elsewhere


def topic(client: Client, address: str) -> str:
    return matched('data-topics="([^"]*)"', shown(client, address))


def told(address: str) -> Mapping[str, str]:
    found = topics.find(address)
    assert found
    return found[0].render(found[1])


def test_a_dead_message_that_is_retried_elsewhere(recorded: Recorded) -> None:
    card = recorded.refused_card()
    page = shown(recorded.operator, f"/archive/{card}/")
    assert 'data-live="message.was.dead"></div>' in page
    assert 'class="acts" data-live-class="message.acts.dead"' in page
    followed = topic(recorded.operator, f"/archive/{card}/")
    before = told(followed)
    assert (before["message.was.dead"], before["message.acts.dead"]) == ("", "acts")
    assert "Retried by" not in before["message.steps"]
    single.act("retry", card, recorded.second.get("/").wsgi_request.user, "console")
    now = told(followed)
    assert "This message is retried now." in now["message.was.dead"]
    assert "Load it again" in now["message.was.dead"]
    assert now["message.acts.dead"] == "off"
    assert "Retried by tomas" in now["message.steps"]
    assert "retried" in now["message.state"]
    assert "tomas" in now["message.state"]
    assert now["@title"].startswith("ChargeCard, retried in Billing")
    assert succeed(recorded.connection, card)  # as its endpoint does, without a NOTIFY
    assert "This message is succeeded now." in told(followed)["message.was.retried"]


def test_restored_message_has_its_acts_again(recorded: Recorded) -> None:
    card = recorded.refused_card()
    followed = topic(recorded.operator, f"/archive/{card}/")
    person = recorded.second.get("/").wsgi_request.user
    single.act("discard", card, person, "console")
    assert told(followed)["message.acts.dead"] == "off"
    single.act("restore", card, person, "console")
    assert (told(followed)["message.was.dead"], told(followed)["message.acts.dead"]) == ("", "acts")


def test_live_steps_are_in_the_viewers_zone(recorded: Recorded) -> None:
    card = recorded.refused_card()
    died = recorded.connection.value("select died_at from messages.message_archive where id = %s", [card])
    for zone in ("Asia/Tokyo", "UTC"):
        there = f"{died.astimezone(ZoneInfo(zone)):%H:%M:%S}"
        assert there in told(f"message:{card}:{zone}")["message.steps"]


def test_removed_archive_row_is_reported_on_the_open_page(recorded: Recorded) -> None:
    card = recorded.refused_card()
    followed = topic(recorded.operator, f"/archive/{card}/")
    recorded.connection.run("delete from messages.message_archive where id = %s", [card])
    assert "removed from the archive" in told(followed)["message.was.dead"]


def test_a_waiting_message_that_was_received(recorded: Recorded) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    row = recorded.connection.value('select id from "Sales" order by seq limit 1')
    place = f"/queues/public/Sales/messages/{row}/"
    assert 'data-live="message.left"></div>' in shown(recorded.operator, place)
    followed = topic(recorded.operator, place)
    assert told(followed)["message.left"] == ""
    recorded.connection.run('delete from "Sales" where id = %s', [row])
    assert "It is no longer in Sales: received, moved or removed." in told(followed)["message.left"]
    recorded.connection.run('drop table "Sales"')
    assert "no longer in Sales" in told(followed)["message.left"]


def test_a_table_without_a_key_is_not_read_each_second(recorded: Recorded) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    recorded.connection.run(
        """do $$ declare name text; begin
        select conname into name from pg_constraint where conrelid = '"Sales"'::regclass and contype = 'p';
        execute format('alter table "Sales" drop constraint %I', name); end $$"""
    )
    row = recorded.connection.value('select id from "Sales" order by seq limit 1')
    assert topic(recorded.operator, f"/queues/public/Sales/messages/{row}/") == ""


def test_an_archive_that_does_not_answer_takes_nothing_from_the_page(recorded: Recorded) -> None:
    followed = topic(recorded.operator, f"/archive/{recorded.refused_card()}/")
    with elsewhere("queues", PORT="1"):
        assert told(followed) == {}


@pytest.mark.parametrize(
    ("said", "argument"),
    [
        ("message:00418:Europe/Berlin", "418:Europe/Berlin"),
        ("message:418:Nowhere/AtAll", "418:UTC"),
        ("message:418", "418:UTC"),
        ("message:99999999999:UTC", None),
        ("message:x", None),
        ("waiting:03:AB91D111-5A9E-4A2C-8A6B-B30D00C3F2AA", "3:ab91d111-5a9e-4a2c-8a6b-b30d00c3f2aa"),
        ("waiting:3:'; drop", None),
        ("waiting:x:ab91d111-5a9e-4a2c-8a6b-b30d00c3f2aa", None),
    ],
)
def test_an_argument_has_one_spelling(said: str, argument: str | None, as_viewer: Client) -> None:
    as_viewer.get("/")  # its urls register the topics
    found = topics.find(said)
    assert (found and found[1]) == argument


@pytest.mark.parametrize("page", ["/archive/", "/settings/", "/messages/"])
def test_a_page_that_follows_nothing_names_no_topic(recorded: Recorded, page: str) -> None:
    """Its script then shows the time of the page instead of "live"."""
    assert topic(recorded.operator, page) == ""
