"""Queues of unwatched schemas are counted and never read (B9)."""

import pytest
from django.test import Client

from pgqueue_admin.dialects import Connection
from tests.console.pages import Connect, shown
from tests.console.sampled import elsewhere, signed_in

QUEUE = "create table {}.{} (id uuid, expires timestamp, headers text, body bytea, seq bigint)"


@pytest.fixture
def queues(recorded_console: str, connect: Connect) -> Connection:
    connection = connect(recorded_console)
    for schema, names in {"ops": ("One", "Two", "Three"), "billing": ("One",)}.items():
        connection.run(f"create schema {schema}")
        for name in names:
            connection.run(QUEUE.format(schema, f'"{name}"'))
    connection.run("create table ops.other (id uuid, headers text, body bytea)")
    return connection


def part(client: Client) -> str:
    said = client.get("/queues/unwatched/", headers={"HX-Request": "true"}).content.decode()
    return " ".join(said.split())


@pytest.mark.parametrize("page", ["/queues/", "/settings/"])
def test_pages_load_the_count(recorded_console: str, page: str) -> None:
    assert 'hx-get="/queues/unwatched/"' in shown(signed_in(), page)


def test_unwatched_queues_are_counted_by_schema(queues: Connection) -> None:
    client = signed_in()
    said = part(client)
    assert "<b>4 more</b> in ops (3) and billing (1): add them to <code>PGQUEUE_QUEUE_SCHEMAS</code>" in said
    assert ",ops,billing</code>" in shown(client, "/queues/unwatched/")


def test_single_unwatched_schema_is_named_alone(queues: Connection) -> None:
    queues.run("drop schema billing cascade")
    assert "<b>3 more</b> in ops (3): add it to" in part(signed_in())


def test_few_of_many_schemas_are_named(queues: Connection) -> None:
    for number in range(10):
        queues.run(f"create schema tenant{number}")
        queues.run(QUEUE.format(f"tenant{number}", "one"))
    said = part(signed_in())
    assert "<b>14 more</b> in ops (3), billing (1), tenant0 (1), tenant1 (1), tenant2 (1) and 7 other schemas" in said


def test_unwatched_tables_are_not_read(queues: Connection) -> None:
    """The catalog answers although the table is locked; a row policy of its owner would not run."""
    with queues.transaction():
        queues.run('lock table ops."One" in access exclusive mode')
        assert "<b>4 more</b>" in part(signed_in())


def test_page_says_when_no_queue_is_unwatched(recorded_console: str) -> None:
    client = signed_in()
    assert "No other schema of this database has a queue-shaped table" in part(client)
    assert "No queue is left out" in shown(client, "/queues/unwatched/")


def test_an_outage_is_said_in_its_place(console_database: str) -> None:
    client = signed_in()
    with elsewhere("queues", PORT="1"):
        assert "could not be counted" in part(client)
