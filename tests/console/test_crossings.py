"""The page of crossings: shows messages between two databases, and a person records what became of them."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from pgqueue_admin.archive import crossings, dead_messages
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Operation, Queue
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.services.operations.crossings import one_pending, undecided
from pgqueue_admin.services.operations.selection import freeze
from tests.archived_messages import archived
from tests.billing import NAME, ORDERS, failed_there, looked_at
from tests.console.pages import Connect, shown
from tests.console.recorded import Recorded
from tests.databases import Databases

PAGE = "/operations/crossings/"
WHY = "Another server <b>answers</b> there now."
MARK = "7312 00000001 4711 0/16B3748"


@pytest.fixture
def here(recorded: Recorded, settings: Settings) -> Iterator[Connection]:
    there = looked_at("postgresql://nobody@127.0.0.1:1/none")
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": there, "ENVIRONMENT": "staging"}
    yield recorded.connection
    queue_databases.close()


@pytest.fixture
def as_viewer(here: Connection, recorded: Recorded) -> Client:
    return recorded.viewer


@pytest.fixture
def as_operator(here: Connection, recorded: Recorded) -> Client:
    return recorded.operator


def set_out(here: Connection, number: int = 3, operation: int | None = None) -> int:
    """Start a crossing of ``number`` dead messages into billing, as a killed act leaves it."""
    with here.transaction():
        rows = dead_messages.hold(here, failed_there(number))
        crossings.put_back(here, {ORDERS: rows}, (), "ana", operation, False)
    with crossings.all_let_go(here):
        return max(each.id for each in crossings.open_ones(here))


def in_doubt(here: Connection, number: int = 3, operation: int | None = None) -> int:
    crossing = set_out(here, number, operation)
    about = {"id": crossing, "mark": MARK, "why": WHY}
    here.run("update messages.crossing set mark = %(mark)s, not_known = %(why)s where id = %(id)s", about)
    return crossing


def text(client: Client, address: str = PAGE) -> str:
    return " ".join(unescape(shown(client, address)).split())


def test_an_empty_page_teaches(as_viewer: Client, here: Connection, settings: Settings) -> None:
    page = text(as_viewer)
    assert "Nothing is between two databases" in page
    assert "A retry into billing" in page
    assert 'aria-current="page"' in page
    settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": {}}
    assert "No other database is written to" in text(as_viewer)


def test_crossing_on_its_way_shows_the_outcome_query(as_viewer: Client, here: Connection) -> None:
    crossing = set_out(here)
    page = text(as_viewer)
    assert "has not left" in page
    assert "nothing can have been committed in billing" in page
    here.run("update messages.crossing set mark = %(mark)s", {"mark": MARK})
    assert "billing is asked each minute" in text(as_viewer)
    one = text(as_viewer, f"{PAGE}{crossing}/")
    assert "billing: pg_xact_status(4711), in cluster 7312 on timeline 00000001" in one
    assert "Did they arrive?" not in one


def test_undecided_crossing_shows_all_that_is_known(as_operator: Client, here: Connection) -> None:
    operation = freeze("retry", failed_there(3), "ana", "console", "mended")
    Operation.objects.filter(pk=operation.pk).update(state="done", started_at=operation.created_at)
    crossing = in_doubt(here, operation=operation.pk)
    html = shown(as_operator, f"{PAGE}{crossing}/")
    page = text(as_operator, f"{PAGE}{crossing}/")
    for each in ("3 messages put into billing?", "staging", "billing:public.Orders", "the archive", WHY, "4711"):
        assert each in page, each
    assert WHY not in html
    ids = [row.id for row in here.all("select row_id::text as id from messages.crossing_put")]
    assert all(f'href="/queues/billing:public/Orders/messages/{each}/"' in html for each in ids)
    listed = shown(as_operator, PAGE)
    assert f'href="{PAGE}{crossing}/"' in listed
    assert f'href="/operations/{operation.pk}/"' in listed
    assert f'href="{PAGE}{crossing}/"' in shown(as_operator, f"/operations/{operation.pk}/")
    assert f'href="{PAGE}"' in shown(as_operator, "/operations/")
    assert f'href="{PAGE}{crossing}/"' in shown(as_operator, f"/archive/{failed_there(3)[0]}/")


@pytest.mark.parametrize(("decision", "state"), [("arrived", "retried"), ("lost", "dead")])
def test_a_person_decides_with_a_reason(as_operator: Client, here: Connection, decision: str, state: str) -> None:
    crossing = in_doubt(here)
    (message, *_) = failed_there(3)
    place = f"{PAGE}{crossing}/decide/"
    for wrong in ({"decision": decision}, {"decision": "perhaps", "reason": "x"}):
        assert as_operator.post(place, wrong)["Location"] == f"{PAGE}{crossing}/"
        assert archived(message).crossing == "billing"
    said = text(as_operator)
    assert "say as the reason what you saw" in said
    assert "say whether it arrived or was lost" in said
    assert not AuditEntry.objects.filter(verb="decide")
    done = as_operator.post(place, {"decision": decision, "reason": "seen there"})
    assert done["Location"] == PAGE
    assert f"3 messages: they {'arrived' if decision == 'arrived' else 'did not arrive'}." in text(as_operator)
    found = archived(message)
    assert (found.state, found.crossing) == (state, None)
    entry = AuditEntry.objects.get(verb="decide")
    assert (entry.who, entry.origin, entry.count, entry.reason) == ("ana", "console", 3, "seen there")
    assert as_operator.post(place, {"decision": decision, "reason": "again"})["Location"] == PAGE
    assert as_operator.get(f"{PAGE}{crossing}/").status_code == 404
    assert AuditEntry.objects.filter(verb="decide").count() == 1


def test_crossing_still_being_asked_cannot_be_decided(as_operator: Client, here: Connection) -> None:
    crossing = set_out(here)
    as_operator.post(f"{PAGE}{crossing}/decide/", {"decision": "lost", "reason": "impatient"})
    assert f"no crossing {crossing} waits for it" in text(as_operator)
    assert crossings.get(here, crossing) is not None


def test_decision_needs_the_retry_right(as_viewer: Client, here: Connection) -> None:
    crossing = in_doubt(here)
    assert "Saying what became of it needs the right" in text(as_viewer, f"{PAGE}{crossing}/")
    as_viewer.post(f"{PAGE}{crossing}/decide/", {"decision": "lost", "reason": "x"})
    assert crossings.get(here, crossing) is not None
    assert not AuditEntry.objects.filter(verb="decide")


def test_rows_of_an_error_queue_there_say_where_their_copies_go(as_operator: Client, here: Connection) -> None:
    with here.transaction():
        crossing = crossings.take_in(here, "billing", "ingester")
        row = {"id": "7b1c2f9e-6a43-4f8e-9d0b-0c8f3f1f2a11", "expires": None, "headers": "{}", "seq": 1, "body": None}
        about = {"crossing": crossing.id, "found_schema": "billing:public", "found_table": "error"}
        here.run(postgresql().crossing_intent.copy(), {**about, **row})
        crossings.doubt(here, crossing, WHY)
    page = text(as_operator, f"{PAGE}{crossing.id}/")
    assert "1 message taken out of billing?" in page
    assert "Its copies go into the bin" in page


def test_engine_tables_of_a_version_before_are_no_error(as_viewer: Client, here: Connection) -> None:
    here.run("drop table messages.crossing_copy, messages.crossing_put, messages.crossing")
    queue_databases.close()
    assert "Nothing is between two databases" in text(as_viewer)


@pytest.fixture
def billing(databases: Databases, recorded: Recorded, settings: Settings, connect: Connect) -> Iterator[Connection]:
    """A writable database with one known queue."""
    with databases.clone("empty") as dsn:
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(dsn)}
        there = connect(dsn)
        postgresql().queue_store(Address("public", "Orders")).create(there)
        Queue.objects.create(schema=ORDERS.schema, table=ORDERS.table, kind="input", first_seen_at=timezone.now())
        yield there
        queue_databases.close()


QUEUE = "/queues/billing:public/Orders/"
TYPED = {"type": "Shop.PlaceOrder", "body": "{}", "content_type": "application/json", "reason": "asked for"}


def test_a_message_is_typed_for_another_database(billing: Connection, recorded: Recorded) -> None:
    client = recorded.operator
    assert f'href="{QUEUE}send/"' in shown(client, QUEUE)
    assert "can be switched on in its settings" in text(client, f"{QUEUE}send/")
    assert client.post(f"{QUEUE}send/", TYPED).status_code == 422
    form = text(client, "/settings/queues/billing:public/Orders/")
    assert "may send, move, discard and archive messages that wait here." in form
    client.post("/settings/queues/billing:public/Orders/", {"acts_allowed": "on", "reason": "ours, too"})
    assert Queue.objects.get(schema=ORDERS.schema).acts_allowed
    assert client.post(f"{QUEUE}send/", TYPED)["Location"] == QUEUE
    assert "1 message sent to Orders" in text(client, QUEUE)
    assert billing.value('select count(*) from "Orders"') == 1


def test_waiting_messages_elsewhere_are_discarded_and_purged_on_pages(billing: Connection, recorded: Recorded) -> None:
    client = recorded.operator
    put = "insert into \"Orders\" (id, headers, body) values (gen_random_uuid(), '{}', 'x') returning id, seq"
    row: Any = billing.one(put)
    assert "See its settings" in shown(client, f"{QUEUE}messages/")
    client.post("/settings/queues/billing:public/Orders/", {"acts_allowed": "on", "reason": "ours, too"})
    page = shown(client, f"{QUEUE}messages/")
    tick = f"{row.id}:{row.seq}"
    assert f'value="{tick}"' in page
    asked = {"act": "discard", "id": tick, "reason": "junk"}
    question = client.post(f"{QUEUE}messages/acts/", asked)
    assert "these rows" in question.content.decode() or "this row" in question.content.decode()
    assert client.post(f"{QUEUE}messages/acts/", {**asked, "sure": "yes"}).status_code == 303
    assert "1 message discarded" in text(client, QUEUE)
    assert billing.value('select count(*) from "Orders"') == 0
    billing.one(put)
    asked = {"act": "purge", "schema": ORDERS.schema, "table": ORDERS.table, "reason": "flood"}
    assert 'value="purge"' in shown(client, QUEUE)
    location = client.post("/operations/", asked)["Location"]
    assert "1 message" in text(client, location)


def test_delayed_messages_of_another_database_are_cancelled_on_pages(billing: Connection, recorded: Recorded) -> None:
    client = recorded.operator
    delayed = Address("public", "Orders.Delayed")
    postgresql().delayed_store(delayed, Address("public", "Orders")).create(billing)
    Queue.objects.create(schema="billing:public", table="Orders.Delayed", kind="delayed")
    billing.run("insert into \"Orders.Delayed\" (headers, body, due) values ('{}', 'x', '2999-01-01')")
    path = "/queues/billing:public/Orders.Delayed/messages/"
    assert "can be switched on in its settings" in text(client, path)
    client.post("/settings/queues/billing:public/Orders/", {"acts_allowed": "on", "reason": "ours, too"})
    (tick,) = re.findall(r'value="([0-9a-f-]{36}:2999-01-01 00:00:00\+00)"', shown(client, path))
    asked = {"act": "cancel", "id": tick, "reason": "junk"}
    assert "Orders.Delayed" in client.post(f"{path}acts/", asked).content.decode()
    assert client.post(f"{path}acts/", {**asked, "sure": "yes"}).status_code == 303
    assert "1 message cancelled" in text(client, QUEUE)
    assert billing.value('select count(*) from "Orders.Delayed"') == 0


def test_a_message_is_edited_for_another_database(billing: Connection, recorded: Recorded) -> None:
    (one,) = failed_there(1)
    client = recorded.operator
    form = shown(client, f"/archive/{one}/edit/")
    assert "only looked at" not in form
    fields = {"to": NAME, "header": ["Customer"], "value": ["4711"], "reason": "mended", "body": '{"Number": 1}'}
    answer = client.post(f"/archive/{one}/edit/", fields)
    assert answer["Location"] == f"/archive/{one}/"
    assert "1 edited message was sent" in text(client, f"/archive/{one}/")
    assert archived(one).state == "retried"
    assert billing.value('select count(*) from "Orders"') == 1


def test_the_queue_is_named_as_everywhere(here: Connection) -> None:
    crossing = in_doubt(here)
    found = one_pending(here, crossing)
    assert found is not None
    assert list(found.queues) == [Address("billing:public", "Orders")]
    assert undecided()[0].rows.keys() == {"billing:public.Orders"}
    assert NAME == '"billing:public"."Orders"'
