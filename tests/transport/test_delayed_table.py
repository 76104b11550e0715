"""Delayed tables, ours and recorded ones (wire sheet 1.2, 3)."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import RowsDropped
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport import OutgoingMessage
from pgqueue_admin.transport.delayed.table import BATCH, DelayedTable
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.transport.wire import headers as h
from tests.row_filtering_trigger import leaving_out
from tests.transport.recording_observer import rows
from tests.transport.table_catalog import catalog

QUEUE = Address("public", "Sales")
EXPECTED = json.loads((Path(__file__).parents[1] / "fixtures/nservicebus/expected.json").read_text())


@pytest.fixture
def delayed(connection):
    TableQueue(postgresql(), QUEUE).create(connection)
    delayed = DelayedTable(postgresql(), QUEUE)
    delayed.create(connection)
    return delayed


def message(delay, number=0):
    return OutgoingMessage(QUEUE, {h.MESSAGE_ID: f"m-{number}"}, b"{}", delay=delay)


def ids(dsn, table="Sales"):
    return [h.parse(row.headers)[h.MESSAGE_ID] for row in rows(dsn, table)]


def test_a_delay_is_counted_by_the_server_and_a_time_stays_itself(connection, delayed):
    at = datetime(2031, 3, 30, 1, 30, 0, 123456, tzinfo=UTC)
    with connection.transaction():
        delayed.store(connection, [message(timedelta(days=40, milliseconds=7)), message(at)])
        found = connection.all('select due, due - now() as left from "Sales.Delayed" order by due')
    assert found[0].left == timedelta(days=40, milliseconds=7)
    assert found[1].due == at


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_no_session_zone_moves_it(connection, delayed, zone):
    """A zone set by a handler, or by the server's default, shifts the original's rows by hours."""
    connection.run(f"set timezone = '{zone}'")
    delayed.store(connection, [message(timedelta(minutes=1))])
    assert 0 < delayed.next_due(connection) <= 60
    assert delayed.move_due(connection) == 0


def test_due_ones_come_in_the_order_of_their_time(connection, database, delayed):
    now = datetime.now(UTC)
    for number in (3, 1, 2):
        delayed.store(connection, [message(now - timedelta(minutes=9 - number), number)])
    delayed.store(connection, [message(timedelta(hours=1), 4)])
    ours = connection.value('select id from "Sales.Delayed" order by due limit 1')
    assert delayed.move_due(connection) == 3
    assert ids(database) == ["m-1", "m-2", "m-3"]
    first = rows(database, "Sales")[0]
    assert (first.id, first.expires) == (ours, None)
    assert 3000 < delayed.next_due(connection) <= 3600


def test_a_batch_at_a_time(connection, database, delayed):
    delayed.store(connection, [message(timedelta(), number) for number in range(BATCH + 5)])
    assert [delayed.move_due(connection) for _ in range(3)] == [BATCH, 5, 0]
    assert delayed.next_due(connection) is None


def test_never_and_long_ago(connection, delayed):
    connection.run("insert into \"Sales.Delayed\" (headers, due) values ('{}', 'infinity'), ('{}', '-infinity')")
    assert delayed.move_due(connection) == 1
    assert delayed.next_due(connection) is None


def test_movers_beside_each_other_move_each_once(connection, connect, database, delayed):
    """Ours skip locked rows; a foreign one, which skips nothing, waits and then finds nothing (wire sheet 3)."""
    delayed.store(connection, [message(timedelta(), number) for number in range(300)])
    foreign = """
        with due as (delete from "Sales.Delayed" where id in
                         (select id from "Sales.Delayed" where due < now() limit 100)
                     returning id, headers, body)
        insert into "Sales" (id, headers, body) select * from due
    """
    sessions = [connect(database) for _ in range(4)]
    moves = [delayed.move_due, delayed.move_due, lambda session: session.run(foreign)] * 2
    barrier = threading.Barrier(4)

    def move(session, move):
        barrier.wait(60)
        while move(session):
            pass

    threads = [threading.Thread(target=move, args=pair) for pair in zip(sessions, moves, strict=False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    while delayed.move_due(connection):
        pass
    assert Counter(ids(database)) == Counter({f"m-{number}": 1 for number in range(300)})


def test_rows_held_by_another_mover_are_skipped_and_hide_no_others(connection, connect, database, delayed):
    """A later due message is moved by the second mover, not up to a minute late."""
    delayed.store(connection, [message(timedelta())])
    other = connect(database)
    with other.transaction():
        assert delayed.move_due(other) == 1
        assert delayed.move_due(connection) == 0
        assert delayed.next_due(connection) is None
        delayed.store(connection, [message(timedelta(hours=1))])
        assert 3500 < delayed.next_due(connection) <= 3600


def test_row_dropped_by_the_queues_trigger_stays_delayed(connection, delayed):
    """Such a trigger raises no error, and the row would be gone from both tables."""
    delayed.store(connection, [message(timedelta(), number) for number in (1, 2)])
    leaving_out(connection, '"Sales"', "insert", "m-2")
    with pytest.raises(RowsDropped, match="took 1 of 2"), connection.transaction():
        delayed.move_due(connection)
    assert connection.value('select count(*) from "Sales.Delayed"') == 2


def test_an_index_that_is_missing_is_made(connection, delayed):
    """Even beside an uncommitted writer: an existing index is not created again."""
    before = catalog(connection, delayed.address)
    connection.run('drop index "Sales.Delayed_Due"')
    delayed.create(connection)
    assert catalog(connection, delayed.address) == before


def test_creation_does_not_wait_for_writers(connection, connect, database, delayed):
    writer = connect(database)
    with writer.transaction():
        delayed.store(writer, [message(timedelta(hours=1))])
        connection.run("set lock_timeout = '2s'")
        delayed.create(connection)


@pytest.mark.parametrize(
    "recorded", [each for each in EXPECTED["delayed"] if each["rows"]], ids=lambda each: each["table"]
)
def test_recorded_tables_are_emptied_when_all_is_due(recorded, connect, recorded_database):
    """With and without BodyString, in a schema with capitals; only what is never due stays."""
    connection = connect(recorded_database)
    queue = Address(recorded["schema"], recorded["table"].removesuffix(".Delayed"))
    delayed = DelayedTable(postgresql(), queue)
    table = f'"{queue.schema}"."{recorded["table"]}"'
    TableQueue(postgresql(), queue).create(connection)
    connection.run(f"update {table} set due = due - interval '10 years' where due > now()")
    before = {
        row.id: tuple(row) for row in connection.all(f"select id, headers, body from {table} where isfinite(due)")
    }
    while delayed.move_due(connection):
        pass
    assert connection.value(f"select count(*) from {table}") == recorded["never_due"]
    moved = {row.id: (row.id, row.headers, row.body) for row in rows(recorded_database, queue.table, queue.schema)}
    assert {key: moved[key] for key in before} == before
