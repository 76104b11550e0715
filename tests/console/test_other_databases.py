"""Queues of a database that is looked at beside the first: the same pages, its own figures, and no act."""

from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, MaskingRule, Queue
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.console.pages import shown
from tests.databases import Databases
from tests.monitor.tables import cut_sessions, fill, make

QUEUE = "/queues/billing:public/Thumbs/"
LIST = f"{QUEUE}messages/"
HERE, THERE = """'{"NServiceBus.MessageId":"here"}'""", """'{"NServiceBus.MessageId":"there"}'"""


@pytest.fixture
def there(
    databases: Databases, settings: Settings, console_database: str, connect: Callable[[str], Connection]
) -> Iterator[Connection]:
    """Both databases have a queue Thumbs: one message here, three there; all have been sampled."""
    with databases.clone("empty") as dsn:
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {"URL": dsn, "SCHEMAS": ["public"]}}}
        here, there = connect(console_database), connect(dsn)
        fill(here, make(here, "Thumbs"), 1, headers=HERE, body="'\\x48455245'")
        fill(there, make(there, "Thumbs"), 3, headers=THERE, body="'\\x5448455245'")
        there.run('create table "Thumbs.Delayed" (id uuid, headers text, body bytea, due timestamptz)')
        for each in (None, *looked_at()):
            with closing(SamplerProcess(each)) as sampling:
                sampling.turn()
        yield there


def state(there: Connection) -> object:
    return there.all('select id, seq, headers, body, xmin, xmax from "Thumbs" order by seq')


def row_id(there: Connection) -> str:
    return str(there.value('select id from "Thumbs" order by seq limit 1'))


def test_its_pages_show_its_own_figures(there: Connection, as_operator: Client) -> None:
    before = state(there)
    html = shown(as_operator, "/queues/?q=thumbs")
    assert "public, Legacy, demo, billing:public" in html
    assert 'href="/queues/billing:public/Thumbs/"' in html
    assert 'href="/queues/public/Thumbs/"' in html
    queue = shown(as_operator, f"{QUEUE}?ends=1")
    assert "Queues of the database billing are only looked at" in unescape(queue)
    assert queue.count("billing:public") > 1
    assert "Send a message" not in queue
    assert "does not exist" not in queue
    assert "Purge" not in queue
    assert "only looked at" in shown(as_operator, f"{QUEUE}send/")
    listed = shown(as_operator, LIST)
    assert listed.count(f"{LIST}") >= 3
    assert 'type="checkbox"' not in listed
    assert "only looked at" in listed
    assert shown(as_operator, "/queues/public/Thumbs/messages/").count("/queues/public/Thumbs/messages/") >= 1
    assert state(there) == before


def test_a_message_there_is_read_there(there: Connection, as_operator: Client) -> None:
    one = f"{LIST}{row_id(there)}/"
    html = shown(as_operator, f"{one}?body=raw")
    assert "THERE" in html
    assert "HERE<" not in html.replace("THERE", "")
    assert async_to_sync(_whole)(as_operator.get(f"{one}body/")) == b"THERE"
    assert as_operator.get(one.replace("billing:", "")).status_code == 404
    assert as_operator.get(one.replace("billing:", "nobody:")).status_code == 404


def test_a_masked_body_there_is_no_file(there: Connection, as_viewer: Client) -> None:
    """The viewer may read messages and reveal nothing."""
    body = f"{LIST}{row_id(there)}/body/"
    MaskingRule.objects.create(name="Here", kind="regex", pattern="HERE")
    answer: Any = as_viewer.get(body)
    assert answer.status_code == 403
    assert b"masking rules hide parts" in answer.content
    MaskingRule.objects.update(pattern="no such text")
    assert async_to_sync(_whole)(as_viewer.get(body)) == b"THERE"
    there.run('delete from "Thumbs"')
    assert as_viewer.get(body).status_code == 403, "of one that is gone nobody can tell"


async def _whole(download: Any) -> bytes:
    return b"".join([piece async for piece in download])


def test_the_finder_looks_there_too(there: Connection, as_operator: Client) -> None:
    found = as_operator.get(f"/messages/{row_id(there)}/")
    assert found["Location"] == f"{LIST}{row_id(there)}/"


def test_a_conversation_is_followed_into_it(there: Connection, as_operator: Client) -> None:
    headers = """'{"NServiceBus.MessageId":"m1","NServiceBus.ConversationId":"order 4711"}'"""
    fill(there, Address("public", "Thumbs"), 1, headers=headers)
    html = shown(as_operator, "/conversations/order%204711/")
    assert "live queue of billing" in html
    assert f"{LIST}" in html
    there.run('alter table "Thumbs" rename to "Gone"')
    assert f"{LIST}" not in shown(as_operator, "/conversations/order%204711/")


def test_delayed_tables_of_both_are_read_where_they_are(there: Connection, as_operator: Client) -> None:
    there.run(
        """insert into "Thumbs.Delayed" select gen_random_uuid(), '{}', '', now() + interval '5 min'"""
        " from generate_series(1, 7)"
    )
    html = shown(as_operator, "/delayed/")
    assert "billing:public/Thumbs.Delayed/" in html
    assert ">7<" in html.replace("\n", "")


def test_no_act_reaches_it(there: Connection, as_operator: Client) -> None:
    before, tick = state(there), f"{row_id(there)}:1"
    asked = {"act": "discard", "id": tick, "sure": "yes", "next": LIST}
    answers = [
        as_operator.post(f"{LIST}acts/", asked),
        as_operator.post(f"{QUEUE}send/", {"type": "Shop.Thumb", "body": "{}", "headers": ""}),
        as_operator.post(
            "/settings/queues/billing:public/Thumbs/", {"acts_allowed": "on", "ingest": "on", "version": "0"}
        ),
    ]
    assert [each.status_code for each in answers[1:]] == [422, 303]
    assert state(there) == before
    row = Queue.objects.get(schema="billing:public", table="Thumbs")
    assert (row.acts_allowed, row.ingest) == (False, False)
    assert not AuditEntry.objects.filter(verb__in=["discard", "send"], count__gt=0).exists()


def test_what_a_table_there_lacks_is_said_by_its_own_name(there: Connection, as_operator: Client) -> None:
    there.run('alter table "Thumbs" alter column seq drop default')
    said = unescape(shown(as_operator, f"{QUEUE}?ends=1"))
    assert '"public"."Thumbs" gives no seq by itself' in said


def test_targets_are_the_consoles_own(there: Connection, as_operator: Client) -> None:
    as_operator.post("/settings/queues/billing:public/Thumbs/", {"target_depth": "2", "version": "0"})
    assert Queue.objects.get(schema="billing:public", table="Thumbs").target_depth == 2
    assert Queue.objects.get(schema="public", table="Thumbs").target_depth != 2
    entry = AuditEntry.objects.get(noun="queue")
    assert entry.subject == '"billing:public"."Thumbs"'
    assert 'href="/queues/billing:public/Thumbs/"' in shown(as_operator, "/audit/")


def test_one_that_does_not_answer_fails_alone(
    there: Connection, as_operator: Client, console_database: str, connect: Callable[[str], Connection]
) -> None:
    name, one = there.value("select current_database()"), row_id(there)
    cut_sessions(there)
    here = connect(console_database)
    here.run(f"alter database {name} allow_connections false")
    assert "does not answer" in shown(as_operator, LIST)
    assert "does not answer" not in shown(as_operator, "/queues/public/Thumbs/messages/")
    assert "all of billing" in unescape(as_operator.get(f"/messages/{one}/").content.decode())


def test_its_settings_offer_targets_alone(there: Connection, as_operator: Client) -> None:
    html = shown(as_operator, "/settings/queues/billing:public/Thumbs/")
    assert 'name="acts_allowed"' not in html
    assert 'name="ingest"' not in html


def test_an_error_queue_of_one_that_is_written_to_may_be_emptied(
    there: Connection, as_operator: Client, settings: Settings
) -> None:
    """And acts on what waits may be switched on; until then they are asked for, and refused."""
    about = settings.PGQUEUE["LOOKED_AT"]["billing"]
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {**about, "WRITABLE": True}}}
    Queue.objects.filter(schema="billing:public", table="Thumbs").update(kind="error")
    html = shown(as_operator, "/settings/queues/billing:public/Thumbs/")
    assert 'name="ingest"' in html
    assert 'name="acts_allowed"' in html
    as_operator.post("/settings/queues/billing:public/Thumbs/", {"ingest": "on", "version": "0"})
    assert Queue.objects.get(schema="billing:public", table="Thumbs").ingest
    queue = shown(as_operator, QUEUE)
    assert "only looked at" not in unescape(queue)
    asked = {"act": "purge", "schema": "billing:public", "table": "Thumbs"}
    refused = as_operator.post("/operations/", asked, follow=True)
    assert "can be switched on in its settings" in unescape(refused.content.decode())
