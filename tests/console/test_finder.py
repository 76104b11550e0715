"""The finder leads from any id to the message, or says what it searched."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from pgqueue_admin.archive import store, text_index
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Queue
from pgqueue_admin.services.operations import single
from tests.console.pages import shown
from tests.console.recorded import Recorded
from tests.console.sampled import signed_in


@pytest.fixture
def card(looked_at: Recorded) -> int:
    return looked_at.refused_card()


def goes_to(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 302
    return response["Location"]


def test_single_sighting_redirects_to_its_page(looked_at: Recorded, card: int) -> None:
    row = looked_at.connection.one("select message_id, row_id from messages.message_archive where id = %s", [card])
    assert row is not None
    for any_id in (card, row.message_id, row.row_id):
        assert goes_to(looked_at.operator, f"/messages/{any_id}/") == f"/archive/{card}/"


def test_a_waiting_message_is_found_by_its_row_id(looked_at: Recorded) -> None:
    row = looked_at.connection.value('select id from "Sales" order by seq limit 1')
    assert goes_to(looked_at.operator, f"/messages/{row}/") == f"/queues/public/Sales/messages/{row}/"


def in_conversation(recorded: Recorded, conversation: str, number: int, like: str = "") -> None:
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, headers)
        select now(), '{}', 'failed', 'test', %s from generate_series(1, %s)""",
        [like or json.dumps({"NServiceBus.MessageId": "m", "NServiceBus.ConversationId": conversation}), number],
    )


def test_a_conversation_is_found_by_its_id(recorded: Recorded) -> None:
    conversation = "ab91d111-5a9e-4a2c-8a6b-b30d00c3f2aa"
    in_conversation(recorded, conversation, 2)
    html = shown(recorded.operator, f"/messages/{conversation}/")
    assert "Conversation of 2 messages" in html
    assert "10,000 archived messages" in html
    recorded.connection.run(
        "delete from messages.message_archive where id = (select max(id) from messages.message_archive)"
    )
    newest = recorded.connection.value("select max(id) from messages.message_archive")
    assert goes_to(recorded.operator, f"/messages/{conversation}/") == f"/archive/{newest}/"


@pytest.mark.parametrize(
    "headers",
    [
        '{"Other": "the-id", "NServiceBus.ConversationId": "another"}',
        '{"Said": "\\"NServiceBus.ConversationId\\": \\"the-id\\""}',
        '{"NServiceBus.ConversationId": "the-id-and-more"}',
        '{"NServiceBus.ConversationId": "the%id"}',
        "no headers: the-id",
    ],
)
def test_id_in_other_headers_is_no_conversation(recorded: Recorded, headers: str) -> None:
    in_conversation(recorded, "", 1, headers)
    assert recorded.operator.get("/messages/the-id/").status_code == 404


def test_an_order_number_in_bodies_is_not_denied(recorded: Recorded) -> None:
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, body)
        values (now(), '{}', 'failed', 'test', 'order 4711-x')"""
    )
    response = recorded.operator.get("/messages/", {"q": "4711-x"}, follow=True)
    html = response.content.decode()
    assert response.status_code == 404
    assert "Bodies: an order number in a body is not found by this box" in html
    assert 'href="/archive/?q=%224711-x%22"' in html
    archived = shown(recorded.operator, "/archive/?q=message%3A4711-x")
    assert "bodies, headers and ids were not searched" in archived
    assert "Searched the whole archive," not in archived
    assert 'href="/messages/?q=4711-x"' in archived


def test_an_id_may_have_a_colon(looked_at: Recorded) -> None:
    assert goes_to(looked_at.operator, "/messages/?q=order:4711") == "/messages/order:4711/"
    assert goes_to(looked_at.operator, "/messages/?q=boom+queue:Billing").startswith("/archive/")


@pytest.mark.parametrize(
    "q", ["card refused", '"card refused"', "-Bill", "card OR bill", "(card OR bill) -test", '"card', "card (", "a -"]
)
def test_a_search_is_handed_to_the_archive_as_it_was_typed(looked_at: Recorded, q: str) -> None:
    """Even one that does not parse: the archive marks the position of the fault."""
    response = looked_at.operator.get("/messages/", {"q": q})
    assert response.status_code == 302
    assert parse_qs(urlsplit(response["Location"]).query) == {"q": [q]}
    assert urlsplit(response["Location"]).path == "/archive/"
    assert looked_at.operator.get(response["Location"]).status_code == 200


def test_an_id_that_reads_as_a_search_is_an_id_still(looked_at: Recorded) -> None:
    looked_at.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, message_id)
        values (now(), '{}', 'failed', 'test', 'order 4711 (again)')"""
    )
    newest = looked_at.connection.value("select max(id) from messages.message_archive")
    response = looked_at.operator.get("/messages/", {"q": "order 4711 (again)"}, follow=True)
    assert response.redirect_chain[-1][0] == f"/archive/{newest}/"
    response = looked_at.operator.get("/messages/", {"q": "order 4711 (twice)"}, follow=True)
    assert response.redirect_chain[-1][0].startswith("/archive/?q=")


def with_body(recorded: Recorded, number: int) -> None:
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind, message_type, body)
        select now(), '{}', 'failed', 'test', 'transport', 'Shop.Bill', 'order ORD-4711' from generate_series(1, %s)""",
        [number],
    )
    with postgresql().connect(recorded.dsn) as connection:
        text_index.build(connection)
    recorded.connection.run("analyze messages.message_archive")


@pytest.mark.parametrize(("number", "said"), [(1, "1 message"), (2, "2 messages"), (101, "100+ messages")])
def test_where_texts_are_indexed_an_order_number_is_found(recorded: Recorded, number: int, said: str) -> None:
    with_body(recorded, number)
    html = " ".join(shown(recorded.operator, "/messages/ORD-4711/").split())
    assert f"<h1>In the texts of {said} </h1>" in html
    assert html.count('<tr role="row">') == min(number, store.SIGHTINGS) + 1
    assert "archived messages by index." in html
    assert 'href="/archive/?q=%22ORD-4711%22"' in html
    response = recorded.operator.get("/messages/ORD-4712/")
    html = " ".join(response.content.decode().split())
    assert response.status_code == 404
    assert "headers and bodies of all" in html
    assert "Bodies: an order number" not in html


def test_finder_without_the_read_right_searches_no_texts(recorded: Recorded) -> None:
    with_body(recorded, 1)
    for word in ("ORD-4711", "ORD-4712"):
        response = recorded.counter.get(f"/messages/{word}/")
        assert response.status_code == 404
        html = " ".join(response.content.decode().replace(word, "").split())
        assert "by index" not in html


def test_several_sightings_are_listed(recorded: Recorded) -> None:
    card = recorded.refused_card()
    single.act("retry", card, "ana", "console")
    message_id = recorded.connection.value("select message_id from messages.message_archive where id = %s", [card])
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, message_id)
        values (now(), '{}', 'failed', 'test', %s)""",
        [message_id],
    )
    html = recorded.operator.get(f"/messages/{message_id}/").content.decode()
    assert "Seen in 2 places" in html


@pytest.mark.parametrize(("number", "said"), [(99, "100"), (100, "100+")])
def test_sightings_over_the_limit_are_counted(recorded: Recorded, number: int, said: str) -> None:
    card = recorded.refused_card()
    message_id = recorded.connection.value("select message_id from messages.message_archive where id = %s", [card])
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, message_id)
        select now(), '{}', 'failed', 'test', %s from generate_series(1, %s)""",
        [message_id, number],
    )
    html = recorded.operator.get(f"/messages/{message_id}/").content.decode()
    assert f"<title>{said} sightings" in html
    assert f"Seen in {said} places" in html
    assert ("The archive has older ones" in html) == (said == "100+")


def test_no_sighting_says_what_was_searched(looked_at: Recorded) -> None:
    response = looked_at.operator.get("/messages/00000000-0000-4000-8000-00000000ffff/")
    html = response.content.decode()
    assert response.status_code == 404
    assert "No message was found by this id" in html
    assert "queues by row id" in html
    assert "Bodies: an order number in a body is not found by this box" in html
    assert "ErrorArchive" in html  # it has no key to search by


def test_a_word_is_told_which_queues_have_it_in_their_name(console_database: str) -> None:
    client = signed_in()
    Queue.objects.create(schema="public", table="Shop.Billing", kind="input")
    html = client.get("/messages/", {"q": "illin"}, follow=True).content.decode()
    assert "No queue has this name." in html
    assert '<a href="/queues/public/Shop.Billing/">' in html
    assert (
        "No queue's name contains it either" in client.get("/messages/", {"q": "Sales"}, follow=True).content.decode()
    )


@pytest.mark.parametrize(
    "any_id", ["<script>alert(1)</script>", "a~2Fb", "%00", "99999999999999999999", "..", "'; drop"]
)
def test_hostile_ids(looked_at: Recorded, any_id: str) -> None:
    response = looked_at.operator.get("/messages/", {"q": any_id}, follow=True)
    assert response.status_code in {200, 404}
    assert b"<script>alert(1)" not in response.content


def test_the_box_knows_queues_and_searches(looked_at: Recorded) -> None:
    Queue.objects.get_or_create(schema="public", table="Billing", kind="input")
    Queue.objects.get_or_create(schema="public", table="Shipping.eu-1", kind="input")
    assert goes_to(looked_at.operator, "/messages/?q=billing") == "/queues/public/Billing/"
    assert goes_to(looked_at.operator, "/messages/?q=Shipp") == "/queues/?q=Shipp"
    assert goes_to(looked_at.operator, "/messages/?q=error:Timeout") == "/archive/?q=error%3ATimeout"
    assert looked_at.operator.get("/messages/").status_code == 200


def test_an_archive_that_is_not_there_hides_no_queue(recorded: Recorded) -> None:
    recorded.connection.run("drop schema messages cascade")
    row = recorded.connection.value('select id from "Sales" order by seq limit 1')
    assert goes_to(recorded.operator, f"/messages/{row}/").endswith(f"{row}/")


def test_an_archive_that_cannot_be_searched_is_not_said_to_lack_it(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sightings(*asked: object) -> None:
        raise TimedOut

    monkeypatch.setattr(store, "sightings", sightings)
    response = recorded.operator.get("/messages/00000000-0000-4000-8000-00000000ffff/")
    html = response.content.decode()
    assert response.status_code == 200
    assert "The archive could not be searched: The database was too slow" in html
    assert "No message was found" not in html
    assert "the whole archive by" not in html
    row = recorded.connection.value('select id from "Sales" order by seq limit 1')
    assert goes_to(recorded.operator, f"/messages/{row}/").endswith(f"{row}/")
