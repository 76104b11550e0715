"""Ingestion of error queues: every message as received, none lost, none that blocks others (C4, wire 2.4, 8.2)."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgqueue_admin.archive import store
from pgqueue_admin.archive.ingester import ingest
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError, RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.wire import headers as h
from tests.archive.conftest import ERROR
from tests.row_filtering_trigger import leaving_out
from tests.waiting import gathered

EXPECTED = json.loads((Path(__file__).parents[1] / "fixtures/nservicebus/expected.json").read_text())["errors"]
ALL = ArchiveFilter(state="")
Connect = Callable[..., Connection]


def by(connection: Connection, column: str, where: str = "true") -> dict[str, int]:
    rows = connection.all(
        f"select coalesce({column}, '(none)'), count(*) from messages.message_archive where {where} group by 1"
    )
    return dict(rows)


def test_all_of_the_recorded_error_queue(recorded: Connection) -> None:
    while ingest(recorded, ERROR).full:
        pass
    assert recorded.value('select count(*) from "public"."error"') == 0
    assert store.count(recorded, ALL, 10_000) == (EXPECTED["rows"], False)
    assert by(recorded, "exception_type") == EXPECTED["by_exception_type"]
    assert by(recorded, "failed_queue") == EXPECTED["by_failed_q"]
    assert by(recorded, "message_type") == EXPECTED["by_message_type"]
    assert by(recorded, "endpoint") == EXPECTED["by_processing_endpoint"]
    assert by(recorded, "machine") == EXPECTED["by_processing_machine"]
    days = by(recorded, "(died_at at time zone 'utc')::date::text", "kind <> 'control'")
    assert days == {day: n for day, n in EXPECTED["by_day"].items() if day != "(none)"}
    longest = recorded.value("select max(length(exception_message)) from messages.message_archive")
    assert longest == EXPECTED["longest_message"]


def test_confirmations_alarm_nobody(recorded_database: str, recorded: Connection, connect: Connect) -> None:
    listener = connect(recorded_database)
    listener.listen("dead_message")
    while ingest(recorded, ERROR, 1000).full:
        pass
    assert by(recorded, "result::text", "kind = 'control'") == {"success": EXPECTED["retry_confirmations"]}
    assert by(recorded, "state", "kind = 'control'") == {"succeeded": 6}
    dead = [str(row[0]) for row in recorded.all("select id from messages.message_dead order by id")]
    assert len(dead) == EXPECTED["rows"] - 6
    heard = gathered(lambda: listener.notifications(1), lambda heard: len(heard) >= len(dead))
    assert [each.payload for each in heard] == dead


def test_a_control_message_is_control(engine: Connection) -> None:
    put(engine, '{"NServiceBus.ControlMessage":"True","NServiceBus.FailedQ":"Sales"}')
    assert ingest(engine, ERROR) == (0, 1, False)
    row = engine.one("select kind, result::text, failed_queue from messages.message_archive")
    assert row == ("control", "success", "Sales")


@pytest.mark.parametrize(
    ("failed_q", "target"),
    [("Billing", ("nsb", "Billing")), ('"Bill.ing"', ("nsb", "Bill.ing")), ("public.Billing", ("public", "Billing"))],
)
def test_an_address_without_a_schema_is_in_that_of_its_error_queue(
    engine: Connection, failed_q: str, target: tuple[str, str]
) -> None:
    """The sender writes the destination of a failed forward, maybe without its schema."""
    engine.run("create schema nsb")
    error = Address("nsb", "error")
    put(engine, json.dumps({h.MESSAGE_ID: "m", h.FAILED_Q: failed_q}), table=error)
    assert ingest(engine, error).dead == 1
    [message] = store.page(engine, ArchiveFilter()).messages
    assert (message.target, message.queue) == (Address(*target), postgresql().canonical(Address(*target)))
    assert message.failed_queue == failed_q


def test_headers_and_body_are_byte_for_byte(recorded: Connection) -> None:
    before = recorded.all('select id, headers, body from "public"."error" order by seq')
    while ingest(recorded, ERROR, 700).full:
        pass
    assert recorded.all("select row_id, headers, body from messages.message_archive order by seq") == before


def test_poison_of_every_kind_is_archived_and_says_why(recorded: Connection) -> None:
    for name in (
        "Poison.MalformedHeaders",
        "Poison.NullHeaders",
        "Poison.NullBody",
        "Poison.OddValues",
        "Poison.Expires",
    ):
        queue = Address("public", name)
        table = postgresql().canonical(queue)
        before = recorded.all(f"select id, expires::text, headers, body from {table} order by seq")
        result = ingest(recorded, queue, 1000)
        assert (result.moved, result.control) == (len(before), 0)
        assert recorded.value(f"select count(*) from {table}") == 0
        archived = "select row_id, expires::text, headers, body from messages.message_archive"
        after = recorded.all(archived + " where ingested_from = %(t)s order by seq", {"t": table})
        assert after == before
        for message in store.page(recorded, ArchiveFilter(queue=table), limit=100).messages:
            assert message.why_no_retry, message.headers


def test_a_table_without_key_or_index_is_ingested(recorded: Connection) -> None:
    assert ingest(recorded, Address("public", "ErrorArchive")).dead == 25


def test_of_a_partitioned_table_each_row_is_archived_once_as_itself(engine: Connection) -> None:
    """Rows of two partitions can share a ctid: a mix-up would retry a message into the wrong queue."""
    engine.run("create sequence s")
    engine.run(
        "create table parted (id uuid default gen_random_uuid(), expires timestamp, headers text not null, body bytea,"
        " seq integer default nextval('s')) partition by list ((seq % 2))"
    )
    for side in (0, 1):
        engine.run(f"create table parted_{side} partition of parted for values in ({side})")
    for number in range(40):
        headers = json.dumps({h.MESSAGE_ID: f"m{number}", h.FAILED_Q: f"q{number}"})
        engine.run("insert into parted (headers, body) values (%s, '')", [headers])
    assert ingest(engine, Address("public", "parted"), 7).moved == 7
    assert engine.value("select count(*) from parted") == 33
    while ingest(engine, Address("public", "parted"), 7).moved:
        pass
    archived = engine.all("select message_id, failed_queue, headers from messages.message_archive order by seq")
    assert [row.message_id for row in archived] == [f"m{number}" for number in range(40)]
    assert all(json.loads(row.headers)[h.FAILED_Q] == row.failed_queue for row in archived)


def test_rows_in_somebodys_hands_are_left_to_them(
    recorded_database: str, recorded: Connection, connect: Connect
) -> None:
    other = connect(recorded_database)
    with other.transaction():
        other.all('select * from "public"."error" order by seq limit 3 for update')
        assert ingest(recorded, ERROR, 5000).moved == EXPECTED["rows"] - 3
    assert ingest(recorded, ERROR, 5000).moved == 3


def test_rolled_back_ingestion_moves_nothing(recorded: Connection) -> None:
    class Stop(Exception):
        pass

    try:
        with recorded.transaction():
            ingest(recorded, ERROR, 10)
            raise Stop
    except Stop:
        pass
    assert recorded.value('select count(*) from "public"."error"') == EXPECTED["rows"]
    assert recorded.value("select count(*) from messages.message_archive") == 0


@pytest.mark.parametrize(("text", "of"), [("", "0 of 3"), ("m-1", "2 of 3")])
def test_rows_kept_by_a_trigger_are_not_counted_as_moved(engine: Connection, text: str, of: str) -> None:
    """Counted as moved, they would be read again at once, for ever, when the queue is emptied."""
    for number in range(3):
        put(engine, json.dumps({h.MESSAGE_ID: f"m-{number}"}))
    leaving_out(engine, "error", "delete", text)
    with pytest.raises(RowsDropped, match=f"gave {of}"):
        ingest(engine, ERROR, 3)
    assert engine.value("select count(*) from error") == 3
    assert engine.value("select count(*) from messages.message_archive") == 0


def test_row_dropped_by_the_archive_stays_in_its_queue(engine: Connection) -> None:
    put(engine, "{}")
    leaving_out(engine, "messages.message_archive", "insert")
    with pytest.raises(RowsDropped):
        ingest(engine, ERROR)
    assert engine.value("select count(*) from error") == 1


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.dictionaries(
                st.sampled_from([h.FAILED_Q, h.MESSAGE_ID, h.TIME_SENT, h.EXCEPTION_MESSAGE, h.EXCEPTION_TYPE, "x"]),
                st.one_of(st.none(), st.text(), st.text(min_size=900, max_size=3000)),
            ).map(json.dumps),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_no_headers_whatever_can_wedge_it(engine: Connection, texts: list[str]) -> None:
    for text in texts:
        put(engine, text)
    assert ingest(engine, ERROR, 100).moved == len(texts)
    assert engine.all(
        "select headers from messages.message_archive order by seq desc limit %(n)s", {"n": len(texts)}
    ) == [(text,) for text in reversed(texts)]
    for message in store.page(engine, ALL, limit=20).messages:
        assert message.why_no_retry


def put(connection: Connection, headers: str, body: bytes | None = b"{}", table: Address = ERROR) -> None:
    connection.run(postgresql().queue.create(table=table))
    params = {"id": uuid4(), "headers": headers, "body": body, "ttbr_ms": None}
    connection.run(postgresql().queue.send(table=table), params)


def test_nothing_is_taken_out_where_that_would_run_code_of_others(engine: Connection) -> None:
    put(engine, "{}")
    engine.run("""
        do $$ begin create role neighbour; exception when duplicate_object then null; end $$;
        create function public.spy() returns trigger language plpgsql as $$ begin return old; end $$;
        alter function public.spy() owner to neighbour;
        create trigger spies before delete on public.error for each row execute function public.spy()
    """)
    with pytest.raises(DatabaseError, match=r"Code of others would run .*: trigger spies of role neighbour"):
        ingest(engine, ERROR)
    assert engine.value("select count(*) from public.error") == 1
    engine.run("drop trigger spies on public.error")
    assert ingest(engine, ERROR).moved == 1
