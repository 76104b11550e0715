"""Messages of one conversation in queues: which are found, how many are looked at, and that nobody is blocked."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import conversations, discovery
from pgqueue_admin.monitor.conversations import TableMessages
from pgqueue_admin.transport.delayed.table import DelayedTable
from pgqueue_admin.transport.wire import header_spellings
from pgqueue_admin.transport.wire import headers as wire
from tests.explain import BY_INDEX, executed
from tests.large_queue import QUEUE, Large
from tests.monitor.tables import looking_as, make

ID = "77e1a0b4-9c1d-4f30-8d52-b3dc0034e6ff"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def put(connection: Connection, table: str, conversation: str = ID, number: int = 1, text: str = "") -> None:
    headers = text or wire.dump({wire.MESSAGE_ID: "m", wire.CONVERSATION_ID: conversation})
    connection.run(
        f"""insert into "{table}" (id, headers, body) select gen_random_uuid(), %s, '' from generate_series(1, %s)""",
        [headers, number],
    )


def looked(connection: Connection, conversation: str = ID) -> dict[str, TableMessages]:
    tables = discovery.by_shape(connection, ["public"])
    told = conversations.read(connection, tables, conversation, NOW)
    return {each.table.address.table: each for each in told}


def test_each_queue_tells_what_it_has_and_how_much_was_looked_at(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B", "C"):
        make(connection, name)
    put(connection, "A", number=2)
    put(connection, "A", "another", number=3)
    put(connection, "B")
    monkeypatch.setattr(conversations, "NEWEST", 5)
    put(connection, "B", "another", number=5)
    told = looked(connection)
    assert [(len(each.messages), each.looked_at, each.whole) for each in told.values()] == [
        (2, 5, False),  # as many as the limit allows: there may be more
        (0, 5, False),  # the conversation's message is older
        (0, 0, True),
    ]


def test_no_more_are_read_than_memory_holds(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A", "B", "C"):
        make(connection, name)
        put(connection, name, number=2)
    monkeypatch.setattr(conversations, "MOST", 3)
    told = looked(connection)
    assert [(len(each.messages), each.whole) for each in told.values()] == [(2, True), (1, False), (0, False)]


def test_a_delayed_message_is_found(connection: Connection) -> None:
    address = make(connection, "A")
    delayed = DelayedTable(postgresql(), address)
    delayed.create(connection)
    headers = wire.dump({wire.CONVERSATION_ID: ID})
    connection.run(
        """insert into "A.Delayed" (id, headers, body, due) values (gen_random_uuid(), %s, '', 'infinity')""", [headers]
    )
    (found,) = looked(connection)["A.Delayed"].messages
    assert found.headers[wire.CONVERSATION_ID] == ID


@pytest.mark.parametrize(
    "text",
    [
        '{"Other": "the-id", "NServiceBus.ConversationId": "another"}',
        '{"Said": "\\"NServiceBus.ConversationId\\": \\"the-id\\""}',
        '{"NServiceBus.ConversationId": "the-id-and-more"}',
        '{"NServiceBus.ConversationId": "the-id", "NServiceBus.ConversationId": "another"}',
        '{"NServiceBus.ConversationId": "the-id"',
        "the-id",
    ],
)
def test_similar_header_text_is_not_in_the_conversation(connection: Connection, text: str) -> None:
    make(connection, "A")
    put(connection, "A", text=text)
    assert looked(connection, "the-id")["A"].messages == []


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), st.sampled_from(["ours", "plain"]))
def test_an_id_of_any_text_is_among_its_spellings(said: str, writer: str) -> None:
    headers = {wire.CONVERSATION_ID: said}
    text = wire.dump(headers) if writer == "ours" else json.dumps(headers, ensure_ascii=False)
    assert text.partition(":")[2].strip()[:-1] in header_spellings.spellings(said)


def test_a_table_that_somebody_holds_is_named_and_the_others_are_read(
    connection: Connection, database: str, connect: Callable[..., Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B", "C"):
        make(connection, name)
        put(connection, name)
    monkeypatch.setattr(conversations, "_EACH", 0.2)
    owner = connect(database)
    with owner.transaction():
        owner.run('lock table "B" in access exclusive mode')
        told = looked(connection)
    assert [len(each.messages) for each in told.values()] == [1, 0, 1]
    assert told["B"].unread
    assert told["B"].failed


def test_lookup_over_its_time_limit_leaves_queues_unread(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(connection, "A")
    put(connection, "A")
    monkeypatch.setattr(conversations, "SECONDS", 0.0)
    assert looked(connection)["A"].unread


def test_unreadable_queue_is_named(connection: Connection, database: str, connect: Callable[..., Connection]) -> None:
    make(connection, "A")
    connection.run("create role only_looks_conversation")
    connection.run("grant usage on schema public to only_looks_conversation")
    looker = looking_as("only_looks_conversation", connect, database)
    try:
        assert "permission denied" in looked(looker)["A"].unread
    finally:
        looker.close()
        connection.run("drop owned by only_looks_conversation; drop role only_looks_conversation")


def test_a_queue_without_an_index_on_seq_is_not_read_to_its_end(connection: Connection) -> None:
    connection.run('create table "A" (id uuid primary key, expires timestamp, headers text, body bytea, seq int)')
    told = looked(connection)["A"]
    assert "no index on seq" in told.unread
    assert not told.failed, "it is not to be read"


def test_of_a_million_rows_the_newest_are_looked_at(large_queue: Large, connect: Callable[..., Connection]) -> None:
    browse = postgresql().browse
    query = browse.in_conversation(table=QUEUE, has_conversation=postgresql().archive.has_conversation)
    asked: dict[str, Any] = {**header_spellings.as_asked(wire.CONVERSATION_ID, ID), "newest": conversations.NEWEST}
    plan = executed(connect(large_queue.dsn), query, asked)
    assert plan.reads(Address("public", "Q").table) <= BY_INDEX
    assert plan.blocks < 2 * conversations.NEWEST
