"""Versions 8 and 13 of the engine's tables rename columns: rows, rights and computed values stay."""

from typing import Any

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from tests.older_schema import ARCHIVE_NAMES, set_back

_DEAD = """
insert into messages.message_archive
    (created_at, message, result, handled_by, kind, queue, found_in, no_retry, became, became_by, became_at, operation)
values
    ('2026-08-04 10:00', '1', 'failed', 'w', 'transport', 'q', 'error', 'no body', 'discarded', 'ana',
        '2026-08-05 10:00Z', 7),
    ('2026-08-04 11:00', '2', 'failed', 'w', 'lease', null, null, null, null, null, null, null)
"""
_ITEM = """
insert into messages.operation_item (operation, place, archive_id, outcome, who_before, when_before)
values (7, 1, 1, 'skipped', 'bo', '2026-08-05 09:00Z'), (7, 2, 2, null, null, null)
"""


def kept(engine: Connection, names: list[str], *item: str) -> list[Any]:
    columns = ", ".join(names)
    rows = engine.all(f"select id, seq, {columns}, operation, state from messages.message_archive order by id")
    dead = engine.all(f"select id, {columns} from messages.message_dead order by id")
    items = "select operation, {}, archive_id, outcome, {}, {} from messages.operation_item order by 2"
    return [rows, dead, engine.all(items.format(*item))]


BEFORE, NOW = ("place", "who_before", "when_before"), ("position", "previous_actor", "previous_at")


@pytest.mark.parametrize("version", [2, 7])
def test_rows_of_before_have_all_they_had(engine: Connection, version: int) -> None:
    set_back(engine, version)
    engine.run(_DEAD)
    engine.run(_ITEM)
    before = kept(engine, list(ARCHIVE_NAMES), *BEFORE)
    assert [row[-1] for row in before[0]] == ["discarded", "dead"]
    assert schema.install(engine) == (schema.VERSION, "updated")
    assert kept(engine, list(ARCHIVE_NAMES.values()), *NOW) == before
    engine.run("update messages.message_archive set resolution = null where id = 1")
    assert engine.value("select count(*) from messages.message_dead") == 2
    with pytest.raises(Exception, match="check constraint"):
        engine.run("update messages.message_archive set resolution = 'lost'")


@pytest.mark.parametrize("version", [8, 12])
def test_item_columns_renamed_keep_their_values(engine: Connection, version: int) -> None:
    set_back(engine, version)
    engine.run(_ITEM.replace("place", "position"))
    before = kept(engine, list(ARCHIVE_NAMES.values()), "position", *BEFORE[1:])[2]
    assert [row[-2] for row in before] == ["bo", None]
    assert schema.install(engine) == (schema.VERSION, "updated")
    assert kept(engine, list(ARCHIVE_NAMES.values()), *NOW)[2] == before


def test_grants_on_renamed_columns_and_the_view_survive(engine: Connection) -> None:
    set_back(engine, 7)
    engine.run(_DEAD)
    engine.run("drop role if exists lease_client; create role lease_client")
    engine.run(
        "grant usage on schema messages to lease_client; grant select on messages.message_dead to lease_client;"
        "grant select (id, became), update (became, ended_at) on messages.message_archive to lease_client;"
        "grant select (operation, who_before), update (when_before) on messages.operation_item to lease_client"
    )
    schema.install(engine)
    engine.run("set role lease_client")
    assert engine.value("select count(*) from messages.message_dead") == 1
    engine.run("update messages.message_archive set resolution = 'retried', ended_at = null where id = 2")
    engine.run("update messages.operation_item set previous_at = null where previous_actor = 'bo' and operation = 7")
    engine.run("reset role; drop owned by lease_client; drop role lease_client")


@pytest.mark.parametrize("version", [5, 7])
def test_a_message_that_was_retried_before_is_noted_after(engine: Connection, version: int) -> None:
    """The function that records it names the column."""
    set_back(engine, version)
    engine.run(_DEAD)
    engine.run("insert into messages.message (message, retried_from) values ('2', 2)")
    engine.run("update messages.message_archive set became = 'retried', retried_as = 1 where id = 2")
    schema.install(engine)
    engine.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, message_id)"
        " select created_at, message, 'success', 'w', '1' from messages.message; delete from messages.message"
    )
    assert engine.one("select resolution, ended_at is not null from messages.message_archive where id = 2") == (
        "succeeded",
        True,
    )
