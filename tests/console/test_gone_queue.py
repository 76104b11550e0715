"""A link to a removed queue leads to what is known of it (C7)."""

import pytest
from django.test import Client
from django.utils import timezone

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Alert, AuditEntry, Endpoint, Queue
from pgqueue_admin.services import queues
from tests.console.pages import shown
from tests.console.recorded import Recorded
from tests.console.sampled import elsewhere, signed_in

OLD = '"public"."Old.Orders"'
PATH = "/queues/public/Old.Orders/"


def died_there(recorded: Recorded, dead: int, discarded: int = 0) -> None:
    recorded.connection.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, queue, kind, resolution)
        select now(), '{}', 'failed', 'test', %s, 'transport', case when n > %s then 'discarded' end
        from generate_series(1, %s) n""",
        [OLD, dead, dead + discarded],
    )


def text(html: str) -> str:
    return " ".join(html.split())


def test_unknown_queue_page_links_to_its_dead(recorded: Recorded) -> None:
    died_there(recorded, 3, 2)
    html = text(shown(recorded.operator, PATH))
    assert "No queue of this name" in html
    assert '<a href="/archive/?q=state%3Adead+queue%3A%22public%22.%22Old.Orders%22">3</a>' in html
    assert '<a href="/archive/?q=queue%3A%22public%22.%22Old.Orders%22">5</a>, the newest' in html
    found = shown(recorded.operator, "/archive/?q=state%3Adead+queue%3A%22public%22.%22Old.Orders%22")
    assert found.count('name="id"') == 3


@pytest.mark.parametrize("page", [PATH, f"{PATH}messages/"])
def test_dropped_queue_page_links_to_its_dead(recorded: Recorded, page: str) -> None:
    died_there(recorded, 3)
    Queue.objects.create(schema="public", table="Old.Orders", kind="input", gone_since=timezone.now())
    html = text(recorded.operator.get(page).content.decode())
    assert "This table is gone" in html
    assert "state%3Adead+queue%3A%22public%22.%22Old.Orders%22" in html
    assert "figures below are the last" in html or f'<a href="{PATH}">Its page</a>' in html


def test_endpoint_warnings_and_acts_are_shown_without_an_archive(console_database: str) -> None:
    address = Address("public", "Old.Orders")
    Endpoint.objects.create(name="Old.Orders", schema="public", table="Old.Orders")
    Alert.objects.create(
        kind="dead",
        queue=OLD,
        severity="critical",
        sentence="2 dead",
        opened_at=timezone.now(),
        last_seen_at=timezone.now(),
    )
    AuditEntry.objects.create(who="ana", verb="set", noun="queue", subject=queues.subject(address), origin="console")
    html = text(shown(signed_in(), PATH))
    assert '<a href="/endpoints/Old.Orders/">' in html
    assert "2 dead" in html
    assert "<b>ana</b>" in html


def test_queue_without_any_trace_is_not_found(recorded: Recorded) -> None:
    assert recorded.operator.get("/queues/public/Nowhere/").status_code == 404
    unwatched = recorded.operator.get("/queues/elsewhere/Nowhere/")
    assert unwatched.status_code == 404
    assert b"This schema is not watched" in unwatched.content


def test_an_archive_that_cannot_be_asked_is_not_said_to_have_none(console_database: str) -> None:
    client = signed_in()
    with elsewhere("queues", PORT="1"):
        html = text(shown(client, PATH))
    assert "Dead messages</dt> <dd> unknown:" in html


def test_a_queue_of_the_same_name_is_named(console_database: str) -> None:
    Queue.objects.create(schema="Legacy", table="old.orders", kind="input")
    Endpoint.objects.create(name="Old.Orders", schema="public", table="Old.Orders")
    assert 'href="/queues/Legacy/old.orders/"' in shown(signed_in(), PATH)


def test_hostile_names(recorded: Recorded) -> None:
    client: Client = recorded.operator
    for name in ("<script>alert(1)<~2Fscript>", "'; drop", "%22quoted%22", "a" * 200):
        response = client.get(f"/queues/public/{name}/")
        assert response.status_code == 404
        assert b"<script>alert" not in response.content
