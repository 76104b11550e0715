"""Archived messages of one conversation are found by their headers in bounded windows, and by ids that they name."""

import json
from typing import Any

import pytest

from pgqueue_admin.archive import conversations
from pgqueue_admin.archive.messages import ArchiveKey
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.transport.wire import header_spellings
from pgqueue_admin.transport.wire import headers as wire
from tests.explain import BY_INDEX, executed

ID = "77e1a0b4-9c1d-4f30-8d52-b3dc0034e6ff"


def bury(connection: Connection, message_id: str, conversation: str = ID, **more: str) -> int:
    headers = {wire.MESSAGE_ID: message_id, wire.CONVERSATION_ID: conversation, **more}
    number: int = connection.value(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind, message_id, headers)
        values (now(), '{}', 'failed', 'test', 'transport', %s, %s) returning id""",
        [message_id, json.dumps(headers)],
    )
    return number


def found(connection: Connection, named: tuple[str, ...] = (), **around: Any) -> list[str]:
    known = conversations.numbers(connection, ID, **around)
    return [each.row.message_id for each in conversations.read(connection, ID, known, named).messages]


def test_conversation_is_found_among_the_newest(engine: Connection) -> None:
    bury(engine, "a")
    bury(engine, "b", "another")
    bury(engine, "c")
    assert sorted(found(engine)) == ["a", "c"]


def test_hidden_queues_messages_are_neither_found_nor_followed(engine: Connection) -> None:
    first = bury(engine, "first")
    hidden = bury(engine, "hidden", **{wire.RELATED_TO: "first"})
    third = bury(engine, "third", **{wire.RELATED_TO: "hidden"})
    engine.run("update messages.message_archive set queue = 'mine' where id = any (%s)", [[first, third]])
    engine.run("update messages.message_archive set queue = 'theirs' where id = %s", [hidden])
    at = engine.value("select died_at from messages.message_archive where id = %s", [hidden])
    with visible_queues.within(VisibleQueues(frozenset(), frozenset(), names=("mine",))):
        assert sorted(found(engine, around=ArchiveKey(at, 0))) == ["first", "third"]
        told = conversations.read(engine, ID, [first, hidden, third], ["hidden", "first"])
        assert sorted(each.row.message_id for each in told.messages) == ["first", "third"]
        assert found(engine, named=("hidden",)) == found(engine)
    assert sorted(found(engine, around=ArchiveKey(at, 0))) == ["first", "hidden", "third"]


def test_older_ones_are_found_by_what_names_them(engine: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """Causes of known messages and messages that others name; a message does not name its own effects."""
    bury(engine, "first")
    bury(engine, "second", **{wire.RELATED_TO: "first"})
    bury(engine, "unnamed")
    bury(engine, "stranger", "another")
    bury(engine, "third", **{wire.RELATED_TO: "second"})
    monkeypatch.setattr(conversations, "NEWEST", 1)
    assert sorted(found(engine)) == ["first", "second", "third"]
    bury(engine, "the newest", "another")
    assert found(engine) == []
    assert sorted(found(engine, named=("third", "stranger"))) == ["first", "second", "third"]


def test_earlier_deaths_of_a_message_are_its_own(engine: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(engine, "a")
    bury(engine, "other", "another")
    bury(engine, "a")
    monkeypatch.setattr(conversations, "NEWEST", 1)
    assert found(engine) == ["a", "a"]


def test_messages_near_a_known_one_are_found(engine: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    bury(engine, "too old")
    numbers = [bury(engine, name) for name in ("before", "known", "after")]
    for _ in range(3):
        bury(engine, "newer", "another")
    monkeypatch.setattr(conversations, "NEWEST", 2)
    monkeypatch.setattr(conversations, "NEAR", 2)
    row = engine.one("select died_at, seq from messages.message_archive where id = %s", [numbers[1]])
    assert row is not None
    engine.run("update messages.message_archive set died_at = died_at - interval '1 hour' where message_id = 'too old'")
    assert found(engine) == []
    near = found(engine, around=ArchiveKey(row.died_at, row.seq))
    assert {"before", "known", "after"} <= set(near)


def test_a_circle_of_causes_ends(engine: Connection) -> None:
    bury(engine, "a", **{wire.RELATED_TO: "b"})
    bury(engine, "b", **{wire.RELATED_TO: "a"})
    bury(engine, "c", **{wire.RELATED_TO: "c"})
    assert sorted(found(engine)) == ["a", "b", "c"]


@pytest.mark.parametrize("conversation", ["a/b", 'a"b', "Zażółć", "😀", "\0", "a%b", "\\", "<b>"])
def test_an_id_of_any_text_is_found(engine: Connection, conversation: str) -> None:
    headers = wire.dump({wire.MESSAGE_ID: "m", wire.CONVERSATION_ID: conversation})
    engine.run(
        """insert into messages.message_archive (created_at, message, result, handled_by, kind, message_id, headers)
        values (now(), '{}', 'failed', 'test', 'transport', 'm', %s)""",
        [headers],
    )
    known = conversations.numbers(engine, conversation)
    told = conversations.read(engine, conversation, known, [conversation])
    assert [each.headers[wire.CONVERSATION_ID] for each in told.messages] == [conversation]


def test_each_message_has_its_archive_events(ingested: Connection) -> None:
    row = ingested.one(
        "select id, headers from messages.message_archive where kind = 'transport' order by died_at desc limit 1"
    )
    assert row is not None
    ingested.run("insert into messages.archive_event (archive_id, who, verb) values (%s, 'ana', 'discarded')", [row.id])
    conversation = json.loads(row.headers)["NServiceBus.ConversationId"]
    told = conversations.read(ingested, conversation, conversations.numbers(ingested, conversation), [])
    assert [event.who for each in told.messages if each.row.id == row.id for event in each.events] == ["ana"]


def test_no_more_is_read_than_is_promised(ingested: Connection) -> None:
    """Read by an index, newest first: the size of the archive does not matter."""
    ingested.run("analyze messages.message_archive")
    ingested.run("set enable_seqscan = off; set enable_sort = off")
    sql = postgresql().archive
    asked: dict[str, Any] = {**header_spellings.as_asked(wire.CONVERSATION_ID, ID), "limit": 10}
    query = sql.in_conversation(has_conversation=sql.has_conversation)
    plan = executed(ingested, query, {**asked, "newest": 20, "seen": None})
    assert plan.indexes == {"message_archive_died"}
    of_ids = executed(ingested, sql.of_ids(), {"message_ids": ["a"], "ids": [1], "limit": 10, "seen": None})
    assert of_ids.reads("message_archive") <= BY_INDEX
