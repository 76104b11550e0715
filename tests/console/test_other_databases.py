"""Queues of a watched database: the same pages, its own figures, and no act."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from html import unescape
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import AuditEntry, MaskingRule, Queue
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests import mssql
from tests.billing import KINDS, Billing
from tests.console.pages import shown
from tests.databases import Databases
from tests.monitor.tables import cut_sessions, fill, make

THERE = '{"NServiceBus.MessageId":"there"}'


@pytest.fixture(params=KINDS)
def there(
    request: pytest.FixtureRequest,
    databases: Databases,
    settings: Settings,
    console_database: str,
    connect: Callable[[str], Connection],
) -> Iterator[Billing]:
    """Both databases have a queue Thumbs: one message here, three there; all are sampled."""
    with ExitStack() as kept:
        if request.param in mssql.ONE:
            billing = Billing(kept.enter_context(request.getfixturevalue("mssql").database()))
        else:
            billing = Billing(kept.enter_context(databases.clone("empty")))
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": billing.looked_at(writable=False)}
        here = connect(console_database)
        headers = """'{"NServiceBus.MessageId":"here"}'"""
        fill(here, make(here, "Thumbs"), 1, headers=headers, body="'\\x48455245'")
        billing.make("Thumbs")
        billing.send("Thumbs", *[(THERE, b"THERE")] * 3)
        billing.make_delayed("Thumbs")
        for each in (None, *looked_at()):
            with closing(SamplerProcess(each)) as sampling:
                sampling.run_once()
        yield billing


def queue(there: Billing) -> str:
    return f"/queues/{there.orders.schema}/Thumbs/"


def messages(there: Billing) -> str:
    return f"{queue(there)}messages/"


there_on_postgresql = pytest.mark.parametrize("there", ["postgresql"], indirect=True)


def state(there: Billing) -> object:
    """In PostgreSQL the state includes row locks."""
    versions = ", xmin, xmax" if there.dialect.sees_locked_rows else ""
    with there.dialect.connect(there.dsn) as session:
        return session.all(f"select Id, Headers, Body{versions} from {there.table('Thumbs')} order by 1")


def row_id(there: Billing) -> str:
    return str(there.rows("Thumbs")[0].id)


def test_its_pages_show_its_own_figures(there: Billing, as_operator: Client) -> None:
    before = state(there)
    html = shown(as_operator, "/queues/?q=thumbs")
    assert f"public, Legacy, demo, {there.orders.schema}" in html
    assert f'href="{queue(there)}"' in html
    assert 'href="/queues/public/Thumbs/"' in html
    one = shown(as_operator, f"{queue(there)}?ends=1")
    assert "Queues of the database billing are only looked at" in unescape(one)
    assert one.count(there.orders.schema) > 1
    assert "Send a message" not in one
    assert "does not exist" not in one
    assert "Purge" not in one
    assert "only looked at" in shown(as_operator, f"{queue(there)}send/")
    listed = shown(as_operator, messages(there))
    assert listed.count(f"{messages(there)}") >= 3
    assert 'type="checkbox"' not in listed
    assert "only looked at" in listed
    assert shown(as_operator, "/queues/public/Thumbs/messages/").count("/queues/public/Thumbs/messages/") >= 1
    assert state(there) == before


def test_a_message_there_is_read_there(there: Billing, as_operator: Client) -> None:
    one = f"{messages(there)}{row_id(there)}/"
    html = shown(as_operator, f"{one}?body=raw")
    assert "THERE" in html
    assert "HERE<" not in html.replace("THERE", "")
    assert async_to_sync(_whole)(as_operator.get(f"{one}body/")) == b"THERE"
    assert as_operator.get(one.replace("billing:", "")).status_code == 404
    assert as_operator.get(one.replace("billing:", "nobody:")).status_code == 404


def test_a_masked_body_there_is_no_file(there: Billing, as_viewer: Client) -> None:
    """The viewer may read messages and reveal nothing."""
    body = f"{messages(there)}{row_id(there)}/body/"
    MaskingRule.objects.create(name="Here", kind="regex", pattern="HERE")
    answer: Any = as_viewer.get(body)
    assert answer.status_code == 403
    assert b"masking rules hide parts" in answer.content
    MaskingRule.objects.update(pattern="no such text")
    assert async_to_sync(_whole)(as_viewer.get(body)) == b"THERE"
    there.run(f"delete from {there.table('Thumbs')}")
    assert as_viewer.get(body).status_code == 403, "of one that is gone nobody can tell"


async def _whole(download: Any) -> bytes:
    return b"".join([piece async for piece in download])


@there_on_postgresql
def test_the_finder_looks_there_too(there: Billing, as_operator: Client) -> None:
    found = as_operator.get(f"/messages/{row_id(there)}/")
    assert found["Location"] == f"{messages(there)}{row_id(there)}/"


def test_a_conversation_is_followed_into_it(there: Billing, as_operator: Client) -> None:
    headers = '{"NServiceBus.MessageId":"m1","NServiceBus.ConversationId":"order 4711"}'
    there.send("Thumbs", (headers, b"x"))
    html = shown(as_operator, "/conversations/order%204711/")
    assert "live queue of billing" in html
    assert f"{messages(there)}" in html
    there.rename("Thumbs", "Gone")
    assert f"{messages(there)}" not in shown(as_operator, "/conversations/order%204711/")


def test_delayed_tables_of_both_are_read_where_they_are(there: Billing, as_operator: Client) -> None:
    there.delay("Thumbs", 7)
    html = shown(as_operator, "/delayed/")
    assert f"{there.orders.schema}/Thumbs.Delayed/" in html
    assert ">7<" in html.replace("\n", "")


def test_no_act_reaches_it(there: Billing, as_operator: Client) -> None:
    before, tick = state(there), f"{row_id(there)}:1"
    asked = {"act": "discard", "id": tick, "sure": "yes", "next": messages(there)}
    answers = [
        as_operator.post(f"{messages(there)}acts/", asked),
        as_operator.post(f"{queue(there)}send/", {"type": "Shop.Thumb", "body": "{}", "headers": ""}),
        as_operator.post(f"/settings{queue(there)}", {"acts_allowed": "on", "ingest": "on", "version": "0"}),
    ]
    assert [each.status_code for each in answers[1:]] == [422, 303]
    assert state(there) == before
    row = Queue.objects.get(schema=there.orders.schema, table="Thumbs")
    assert (row.acts_allowed, row.ingest) == (False, False)
    assert not AuditEntry.objects.filter(verb__in=["discard", "send"], count__gt=0).exists()


@there_on_postgresql
def test_fault_of_a_table_elsewhere_names_it_without_its_alias(there: Billing, as_operator: Client) -> None:
    there.run(f"alter table {there.table('Thumbs')} alter column seq drop default")
    said = unescape(shown(as_operator, f"{queue(there)}?ends=1"))
    assert '"public"."Thumbs" gives no seq by itself' in said


def test_targets_are_the_consoles_own(there: Billing, as_operator: Client) -> None:
    as_operator.post(f"/settings{queue(there)}", {"target_depth": "2", "version": "0"})
    assert Queue.objects.get(schema=there.orders.schema, table="Thumbs").target_depth == 2
    assert Queue.objects.get(schema="public", table="Thumbs").target_depth != 2
    entry = AuditEntry.objects.get(noun="queue")
    assert entry.subject == f'"{there.orders.schema}"."Thumbs"'
    assert f'href="{queue(there)}"' in shown(as_operator, "/audit/")


@there_on_postgresql
def test_unreachable_database_fails_only_its_own_pages(
    there: Billing, as_operator: Client, console_database: str, connect: Callable[[str], Connection]
) -> None:
    name, one = there.dsn.rpartition("/")[2].partition("?")[0], row_id(there)
    cut_sessions(connect(there.dsn))
    here = connect(console_database)
    here.run(f"alter database {name} allow_connections false")
    assert "does not answer" in shown(as_operator, messages(there))
    assert "does not answer" not in shown(as_operator, "/queues/public/Thumbs/messages/")
    assert "all of billing" in unescape(as_operator.get(f"/messages/{one}/").content.decode())


def test_its_settings_offer_targets_alone(there: Billing, as_operator: Client) -> None:
    html = shown(as_operator, f"/settings{queue(there)}")
    assert 'name="acts_allowed"' not in html
    assert 'name="ingest"' not in html


def test_an_error_queue_of_one_that_is_written_to_may_be_emptied(
    there: Billing, as_operator: Client, settings: Settings
) -> None:
    """Acts on waiting messages may also be switched on; until then they are shown and refused."""
    about = settings.PGQUEUE["LOOKED_AT"]["billing"]
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {"billing": {**about, "WRITABLE": True}}}
    Queue.objects.filter(schema=there.orders.schema, table="Thumbs").update(kind="error")
    html = shown(as_operator, f"/settings{queue(there)}")
    assert 'name="ingest"' in html
    assert 'name="acts_allowed"' in html
    as_operator.post(f"/settings{queue(there)}", {"ingest": "on", "version": "0"})
    assert Queue.objects.get(schema=there.orders.schema, table="Thumbs").ingest
    assert "only looked at" not in unescape(shown(as_operator, queue(there)))
    asked = {"act": "purge", "schema": there.orders.schema, "table": "Thumbs"}
    refused = as_operator.post("/operations/", asked, follow=True)
    assert "can be switched on in its settings" in unescape(refused.content.decode())
