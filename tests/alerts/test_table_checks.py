"""`check --database queues` and the queue's page report the table faults that the engine reports at start."""

import html
import re
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections
from django.test import Client

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Endpoint, Queue
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport import checks

NO_INDEX = 'alter table "Sales" drop constraint "Sales_seq_key"'


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def sales(console_database: str) -> Iterator[Engine]:
    endpoint = Engine("Sales", console_database)
    endpoint.create_queues()
    yield endpoint
    endpoint.stop()


def found(database: str = "queues") -> list[Any]:
    return [each for each in run_checks(databases=[database]) if each.id in ("pgqueue.E001", "pgqueue.W005")]


def on_the_page() -> str:
    client = Client()
    client.force_login(User.objects.create_user("ivo"))
    shown = client.get("/queues/public/Sales/ends/").content.decode()
    return html.unescape(re.sub(r"<[^>]*>", "", shown))


def test_healthy_table_has_no_fault(sales: Engine, look: Connection) -> None:
    Endpoint.objects.create(name="Sales", table="Sales")
    assert found() == []


def test_engine_check_and_page_give_the_same_text(sales: Engine, look: Connection) -> None:
    Queue.objects.create(schema="public", table="Sales", kind="input")
    look.run(NO_INDEX)
    (of_the_engine,) = checks.faults(sales, look)
    (checked,) = found()
    assert (checked.msg, checked.hint) == (of_the_engine.said, of_the_engine.cure)
    page = on_the_page()
    assert of_the_engine.said in page
    assert of_the_engine.cure in page
    look.run(checked.hint)
    assert found() == []
    assert of_the_engine.said not in on_the_page_of_another_look()


def on_the_page_of_another_look() -> str:
    User.objects.all().delete()
    return on_the_page()


def test_an_endpoint_of_ours_that_could_not_start_is_an_error(sales: Engine, look: Connection) -> None:
    look.run(NO_INDEX)
    assert [each.id for each in found()] == ["pgqueue.W005"]
    Endpoint.objects.create(name="Sales", table="Sales")
    assert [each.id for each in found()] == ["pgqueue.E001"]
    with pytest.raises(SystemCheckError, match="no index on seq"):
        call_command("check", databases=["queues"], tags=["database"], stderr=StringIO())


def test_tables_that_are_named_and_not_there(sales: Engine, look: Connection) -> None:
    Endpoint.objects.create(name="Sales", table="Sales", audit_queue="audit")
    look.run('drop table "Sales.Delayed"')
    said = {each.msg.partition(" does not exist")[0] for each in found()}
    assert said == {'The queue table "public"."audit"', 'The delayed table "public"."Sales.Delayed"'}


def test_only_asked_for_the_queues(sales: Engine, look: Connection) -> None:
    look.run(NO_INDEX)
    assert found("default") == []


def test_a_database_that_is_away_is_said(sales: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert [each.id for each in run_checks(databases=["queues"]) if "looked at" in each.msg] == ["pgqueue.W006"]
