"""Pages show watched databases of each kind alike. SQL Server runs where one is configured."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.dialects import Dialect, dialect_for
from pgqueue_admin.dialects.delayed_store import DelayedRow
from pgqueue_admin.dialects.errors import NotPermitted
from pgqueue_admin.models import LatestSample
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.monitor import browse, depth, discovery
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests import mssql
from tests.console.pages import shown
from tests.databases import Databases

HEADERS = '{"NServiceBus.EnclosedMessageTypes":"Shop.Thumb, Shop","NServiceBus.MessageId":"m-é"}'
BODY = '{"side":"links é"}'.encode()


class Source(NamedTuple):
    dialect: Dialect
    dsn: str
    session: Any

    @property
    def path(self) -> str:
        return f"/queues/{quote(f'billing:{self.dialect.default_schema}', safe=':')}/Sales/"

    def queue(self) -> Any:
        return self.dialect.queue_store(self.dialect.address(self.dialect.default_schema, "Sales"))

    def sample(self) -> LatestSample:
        (billing,) = looked_at()
        with closing(SamplerProcess(billing)) as sampling:
            sampling.run_once()
        return LatestSample.objects.get(queue__table="Sales")


@pytest.fixture(params=["postgresql", *mssql.ONE])
def source(
    request: pytest.FixtureRequest, databases: Databases, settings: Settings, console_database: str
) -> Iterator[Source]:
    """Three messages in Sales, the last one expired, and one delayed message due in an hour."""
    with ExitStack() as kept:
        if request.param in mssql.ONE:
            dsn = kept.enter_context(request.getfixturevalue("mssql").database())
        else:
            dsn = kept.enter_context(databases.clone("empty"))
        dialect = dialect_for(dsn)
        settings.PGQUEUE = {
            **settings.PGQUEUE,
            "LOOKED_AT": {"billing": {"URL": dsn, "SCHEMAS": [dialect.default_schema]}},
        }
        made = Source(dialect, dsn, kept.enter_context(dialect.connect(dsn)))
        queue = made.queue()
        queue.create(made.session)
        delayed = dialect.delayed_store(dialect.address(dialect.default_schema, "Sales.Delayed"), queue.address)
        delayed.create(made.session)
        for expires_ms in (None, None, 0):
            made.session.run_all(queue.insertions([(HEADERS, BODY, expires_ms)]))
        due = datetime.now(UTC) + timedelta(hours=1)
        made.session.run_all(delayed.insertions([DelayedRow(HEADERS, BODY, due, None)]))
        yield made


async def _whole(download: Any) -> bytes:
    return b"".join([piece async for piece in download])


def rows_of(html: str, path: str) -> list[str]:
    return list(dict.fromkeys(re.findall(rf'href="{re.escape(path)}messages/([0-9a-f-]{{36}})/', html)))


def test_figures_are_those_of_its_rows(source: Source, as_operator: Client) -> None:
    seen = source.sample()
    assert (seen.depth, seen.ready, seen.expired, seen.how, seen.delayed) == (3, 2, 1, "counted", 1)
    assert seen.in_flight == (0 if source.dialect.sees_locked_rows else None)
    assert seen.head_seq is not None
    assert seen.tail_seq is not None
    assert seen.tail_seq - seen.head_seq == 2
    assert seen.sent_total == seen.tail_seq
    assert seen.next_due_at
    assert seen.size_bytes
    html = shown(as_operator, f"{source.path}?ends=1")
    assert "only looked at" in html
    assert "does not answer" not in html
    assert f'href="{source.path}"' in shown(as_operator, "/queues/?q=sales")


def test_messages_are_paged_and_read(source: Source, as_operator: Client) -> None:
    source.sample()
    listed = shown(as_operator, f"{source.path}messages/")
    rows = rows_of(listed, source.path)
    assert len(rows) == 3
    assert rows_of(shown(as_operator, f"{source.path}messages/?order=newest"), source.path) == rows[::-1]
    assert "expired" in listed
    one = unescape(shown(as_operator, f"{source.path}messages/{rows[0]}/?body=raw"))
    assert "links é" in one
    assert "m-é" in one
    assert async_to_sync(_whole)(as_operator.get(f"{source.path}messages/{rows[0]}/body/")) == BODY
    absent = as_operator.get(f"{source.path}messages/6f9619ff-8b86-d011-b42d-00cf4fc964ff/")
    assert absent.status_code == 404
    assert ("what is locked is not" in absent.content.decode()) is not source.dialect.sees_locked_rows


def test_delayed_messages_are_read(source: Source, as_operator: Client) -> None:
    source.sample()
    path = source.path.replace("Sales/", "Sales.Delayed/")
    assert path in shown(as_operator, "/delayed/")
    (row,) = rows_of(shown(as_operator, f"{path}messages/"), path)
    assert "links é" in unescape(shown(as_operator, f"{path}messages/{row}/?body=raw"))


def test_messages_in_flight_are_counted_or_left_out_by_dialect(source: Source, as_operator: Client) -> None:
    with source.session.transaction():
        assert source.session.all(*source.queue().receiving())
        seen = source.sample()
        listed = rows_of(shown(as_operator, f"{source.path}messages/"), source.path)
        if source.dialect.sees_locked_rows:
            assert (seen.depth, seen.in_flight, len(listed)) == (3, 1, 3)
        else:
            assert (seen.depth, seen.in_flight, len(listed)) == (2, None, 2)


def test_looking_changes_nothing_and_waits_for_nobody(source: Source, as_operator: Client) -> None:
    """A receiver gets the same messages after pages were viewed."""
    source.sample()
    for address in ("", "messages/", "messages/?q=state:expired"):
        assert as_operator.get(f"{source.path}{address}").status_code == 200
    with source.session.transaction():
        taken = [row.body for _ in range(2) for row in source.session.all(*source.queue().receiving())]
    assert taken == [BODY, BODY]
    assert source.sample().depth == 1


READER = {
    "postgresql": (
        "create role billing_looker",
        "grant usage on schema public to billing_looker",
        "grant select on all tables in schema public to billing_looker",
        "set role billing_looker",
    ),
    "sqlserver": (
        "create user billing_looker without login",
        "grant select on schema::dbo to billing_looker",
        "execute as user = N'billing_looker'",
    ),
}
NO_READER = {
    "postgresql": ("reset role", "drop owned by billing_looker", "drop role billing_looker"),
    "sqlserver": ("revert", "drop user billing_looker"),
}


@pytest.fixture
def reading(source: Source) -> Iterator[Any]:
    """A session of the console's dialect with a read-only role."""
    with closing(source.dialect.aliased("billing").connect(source.dsn)) as session:
        for statement in READER[source.dialect.name]:
            session.run(statement)
        yield session
        for statement in NO_READER[source.dialect.name]:
            session.run(statement)


def test_a_role_that_may_only_read_sees_what_lies_there(source: Source, reading: Any) -> None:
    tables = discovery.find(reading, [source.dialect.default_schema])
    assert {(table.address.table, table.kind) for table in tables} == {("Sales", "input"), ("Sales.Delayed", "delayed")}
    sales, later = sorted(tables, key=lambda table: table.address.table)
    assert (depth.measure(reading, sales).depth, len(browse.page(reading, sales).messages)) == (3, 3)
    assert depth.measure(reading, later).delayed == 1
    with pytest.raises(NotPermitted):
        reading.run_all([source.queue().receiving()])
    assert depth.measure(reading, sales).depth == 3


def test_subscribers_in_the_other_database_are_shown(source: Source, as_operator: Client) -> None:
    """Read from its own table; unsubscribing is not offered, and refused if posted all the same."""
    dialect, schema = source.dialect, source.dialect.default_schema
    routing = dialect.subscription_store(dialect.address(schema, "SubscriptionRouting"))
    routing.create(source.session)
    sales = dialect.canonical(dialect.address(schema, "Sales"))
    routing.subscribe(source.session, "Sales", "Shop.OrderPlaced", sales)
    routing.subscribe(source.session, "Gone", "Shop.OrderPlaced", sales.replace("Sales", "Nowhere"))
    source.sample()
    html = unescape(shown(as_operator, "/subscriptions/")).replace("<wbr>", "")
    assert "1 subscription leads to a queue that does not exist" in html
    assert f'href="{source.path}"' in html
    assert html.count("in billing: only looked at") == 2
    asked = {"schema": f"billing:{schema}", "table": "SubscriptionRouting", "endpoint": "Sales"}
    asked |= {"topic": "Shop.OrderPlaced", "queueaddress": sales, "sure": "yes"}
    assert as_operator.post("/subscriptions/unsubscribe/", asked).status_code == 422
    assert routing.subscribers(source.session, ["Shop.OrderPlaced"]) == sorted(
        [sales, sales.replace("Sales", "Nowhere")]
    )


def test_a_conversation_is_followed_there(source: Source, as_operator: Client) -> None:
    headers = '{"NServiceBus.ConversationId":"c-é","NServiceBus.MessageId":"of-it"}'
    source.session.run_all(source.queue().insertions([(headers, BODY, None)]))
    source.sample()
    html = shown(as_operator, f"/conversations/{quote('c-é')}/")
    assert len(rows_of(html, source.path)) == 1
    assert "billing" in html


def test_an_endpoint_there_is_told_of_with_its_queue(source: Source, as_operator: Client) -> None:
    """It is judged by the samples of that database."""
    source.sample()
    queue = f'"billing:{source.dialect.default_schema}"."Sales"'
    told = as_operator.post("/endpoints/", {"name": "Billing", "queue": queue, "peek_delay_ms": "1 s"})
    assert told.status_code == 303
    assert source.path in shown(as_operator, "/endpoints/")
    assert source.path in shown(as_operator, "/endpoints/Billing/")
