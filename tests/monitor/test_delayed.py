"""Delayed messages in their tables: paged by due time, and the offset of their due times (wire sheet 3)."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import clock_skew, delayed, depth
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.monitor.sampler import Sampler
from pgqueue_admin.transport.wire.headers import DELIVER_AT, RETRIES_TIMESTAMP
from pgqueue_admin.transport.wire.wire_times import wire_time
from tests.explain import executed
from tests.monitor.tables import found, make

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def table(connection: Connection) -> QueueTable:
    make(connection, "Sales")
    connection.run(postgresql().delayed.create(table=Address("public", "Sales.Delayed")))
    connection.run(postgresql().delayed.create_index(table=Address("public", "Sales.Delayed"), index="Sales_Due"))
    return found(connection, Address("public", "Sales.Delayed"))


def store(connection: Connection, due: datetime | str, **headers: datetime) -> None:
    said = json.dumps({f"NServiceBus.{name.replace('_', '.')}": wire_time(at) for name, at in headers.items()})
    connection.run(
        'insert into "Sales.Delayed" (headers, due) values (%(headers)s, %(due)s::timestamptz)',
        {"headers": said, "due": due},
    )


def all_pages(connection: Connection, table: QueueTable, limit: int) -> list[str]:
    seen, after = [], None
    while True:
        page = delayed.page(connection, table, after=after, limit=limit)
        seen += [str(message.id) for message in page.messages]
        if page.next is None:
            return seen
        after = page.next


def test_pages_follow_each_other_also_where_many_are_due_at_once(connection: Connection, table: QueueTable) -> None:
    for due in ("-infinity", "0044-03-15 12:00 BC", NOON, NOON, NOON, NOON, NOON + HOUR, "infinity", "infinity"):
        store(connection, due)
    ordered = [str(row.id) for row in connection.all('select id from "Sales.Delayed" order by due, id')]
    assert all_pages(connection, table, 2) == ordered
    assert all_pages(connection, table, 50) == ordered


def kept(connection: Connection, rows: int) -> None:
    """Store that many delayed messages, all due."""
    connection.run(
        """insert into "Sales.Delayed" (headers, due) select repeat('h', 500), now() - i * interval '1 s'
           from generate_series(1, %(rows)s) i""",
        {"rows": rows},
    )


def test_past_the_cap_pages_tell_how_many_there_are(connection: Connection, table: QueueTable) -> None:
    """The catalog's statistics are no help: missing, or taken before most rows were deleted."""
    kept(connection, 8_000)
    seen = depth.measure(connection, table, cap=1_000)
    assert (seen.how, seen.delayed_how) == ("estimate", "estimate")
    assert seen.delayed == pytest.approx(8_000, rel=0.1)
    connection.run('analyze "Sales.Delayed"')
    connection.run("""delete from "Sales.Delayed" where due < now() - interval '3000 s'""")
    assert depth.measure(connection, table, cap=1_000).delayed == pytest.approx(3_000, rel=0.25)


def test_partitioned_delayed_table_is_estimated_from_some_pages(connection: Connection) -> None:
    """A partitioned table has no pages of its own: taken as its size, they led to an estimate that read every row."""
    make(connection, "Sales")
    columns = "id uuid default gen_random_uuid(), headers text not null, body bytea, due timestamptz not null"
    connection.run(f'create table "Sales.Delayed" ({columns}) partition by hash (id)')
    for part in range(2):
        bounds = f"with (modulus 2, remainder {part})"
        connection.run(f'create table "part_{part}" partition of "Sales.Delayed" for values {bounds}')
    connection.run('create index on "Sales.Delayed" (due)')
    kept(connection, 8_000)
    connection.run("analyze")
    table = found(connection, Address("public", "Sales.Delayed"))
    assert depth.measure(connection, table, cap=50).delayed == pytest.approx(8_000, rel=0.1)
    pages = connection.value("select sum(relpages) from pg_class where relname in ('part_0', 'part_1')")
    assert executed(connection, *depth.asked(connection.dialect.monitor, table, cap=50)).blocks < pages * 0.75
    assert depth.table_sizes(connection, [table])[table.oid] > pages * 8192


def test_overdue_ones_are_counted_up_to_the_cap(connection: Connection, table: QueueTable) -> None:
    kept(connection, 120)
    seen = depth.measure(connection, table, cap=100)
    assert (seen.overdue, seen.delayed_how) == (100, "estimate")


def test_delayed_row_without_a_due_time_is_counted(connection: Connection, table: QueueTable) -> None:
    kept(connection, 3)
    connection.run('alter table "Sales.Delayed" alter due drop not null')
    connection.run("insert into \"Sales.Delayed\" (headers) values ('{}')")
    seen = depth.measure(connection, table)
    assert (seen.delayed, seen.overdue) == (4, 3)


DISTANT = ("-infinity", "4713-01-01 00:00 BC", "0001-12-31 23:50:39 BC", "294276-12-31 23:00", "infinity")


def test_due_times_beyond_the_calendar_hide_no_others(connection: Connection, table: QueueTable) -> None:
    """DateTime.MinValue, stored from Europe/Paris, lies before year 1."""
    kept(connection, 30)
    for due in DISTANT:
        store(connection, due, DeliverAt=NOON)
    for hours in range(3):
        store(connection, NOON + hours * HOUR + HOUR, DeliverAt=NOON + hours * HOUR)
    for off in (timedelta(hours=14), timedelta(hours=-14)):
        seen = depth.measure(connection, table, now=NOON, skew=off)
        assert (seen.delayed, seen.next_due_at and seen.next_due_at.year) == (38, 1)
        assert seen.overdue == (6 if off > timedelta() else 3)
        told = delayed.spread(connection, table.address, zone=off)
        assert (sum(told), told[-1] >= 1) == (37, True), "infinity is never due"
    told_zone = clock_skew.read(connection, table.address)
    assert told_zone is not None
    assert told_zone.zone == HOUR


def test_delayed_row_due_at_infinity_is_counted(connection: Connection, table: QueueTable) -> None:
    store(connection, "infinity")
    seen = depth.measure(connection, table)
    assert (seen.delayed, seen.overdue, seen.next_due_at) == (1, 0, None)


def test_pages_can_be_turned_back(connection: Connection, table: QueueTable) -> None:
    for hours in range(6):
        store(connection, NOON + hours * HOUR)
    first = delayed.page(connection, table, limit=2)
    second = delayed.page(connection, table, after=first.next, limit=2)
    assert second.previous
    assert second.next
    back = delayed.page(connection, table, before=second.previous, limit=2)
    assert [each.id for each in back.messages] == [each.id for each in first.messages]
    assert (back.previous, back.next) == (None, first.next)


def test_a_due_time_that_no_calendar_reaches_is_said_as_it_stands(connection: Connection, table: QueueTable) -> None:
    store(connection, "infinity")
    message = delayed.page(connection, table).messages[0]
    assert (message.due_text, message.due_at) == ("infinity", None)
    assert delayed.message(connection, table, message.id) == message


def test_the_page_uses_the_index_however_many_wait(connection: Connection, table: QueueTable) -> None:
    connection.run(
        """insert into "Sales.Delayed" (headers, due)
        select '{}', '2026-11-20 12:00+00'::timestamptz + i * interval '1 s' from generate_series(1, 20000) i"""
    )
    connection.run('analyze "Sales.Delayed"')
    browse = postgresql().browse
    for name in ("delayed_upwards", "delayed_downwards"):
        query = getattr(browse, name)(table=table.address, columns=browse.delayed_columns)
        values = {"due": "2026-11-20 14:00+00", "id": delayed.FIRST[1], "limit": 51}
        with connection.transaction():
            plan = "\n".join(row[0] for row in connection.raw.execute(b"explain " + query.as_bytes(), values))
        assert "Index" in plan, plan
        assert "Seq Scan on" not in plan, plan


@pytest.mark.parametrize(
    ("off", "zone", "clock"),
    [
        (timedelta(), timedelta(), 0),
        (timedelta(hours=5, milliseconds=40), timedelta(hours=5), 0.04),  # America/New_York in winter
        (-HOUR, -HOUR, 0),  # Europe/Berlin
        (timedelta(hours=-5, minutes=-45, seconds=20), timedelta(hours=-5, minutes=-45), 20),  # Asia/Kathmandu
        (timedelta(seconds=40), timedelta(), 40),  # a slow clock
    ],
)
def test_headers_tell_zone_and_clock(
    connection: Connection, table: QueueTable, off: timedelta, zone: timedelta, clock: float
) -> None:
    for hours in range(3):
        store(connection, NOON + hours * HOUR + off, DeliverAt=NOON + hours * HOUR)
    told = clock_skew.read(connection, table.address)
    assert told is not None
    assert (told.zone, told.told_by) == (zone, 3)
    assert told.clock.total_seconds() == pytest.approx(clock)


def test_a_time_of_an_earlier_delay_tells_nothing(connection: Connection, table: QueueTable) -> None:
    store(connection, NOON + 2 * HOUR, DeliverAt=NOON - HOUR, Retries_Timestamp=NOON)
    assert clock_skew.read(connection, table.address) is None
    assert {DELIVER_AT, RETRIES_TIMESTAMP} == {"NServiceBus.DeliverAt", "NServiceBus.Retries.Timestamp"}


def test_due_times_that_somebody_set_by_hand_are_no_zone(connection: Connection, table: QueueTable) -> None:
    store(connection, NOON + 30 * HOUR, DeliverAt=NOON)
    assert clock_skew.read(connection, table.address) is None
    for hours in range(1, 5):
        store(connection, NOON + hours * HOUR, DeliverAt=NOON)
    assert clock_skew.read(connection, table.address) is None, "no two of them agree"


def test_rows_put_off_together_are_no_zone(connection: Connection, table: QueueTable) -> None:
    """An ``update … set due = now() + '1 h'`` in an incident shifts rows sent within a second by the same amount."""
    for milliseconds in range(3):
        store(connection, NOON + 5 * HOUR, DeliverAt=NOON + timedelta(milliseconds=milliseconds))
    assert clock_skew.read(connection, table.address) is None
    for hours in range(4):  # untouched rows still show the offset
        store(connection, NOON + hours * HOUR, DeliverAt=NOON + hours * HOUR)
    told = clock_skew.read(connection, table.address)
    assert told is not None
    assert (told.zone, told.told_by) == (timedelta(), 4)


def test_a_zone_is_a_whole_quarter(connection: Connection, table: QueueTable) -> None:
    for hours in range(3):
        store(connection, NOON + hours * HOUR + timedelta(hours=2, minutes=4), DeliverAt=NOON + hours * HOUR)
    assert clock_skew.read(connection, table.address) is None, "four minutes beside two hours: by hand"


def test_timeouts_for_one_instant_tell_a_zone(connection: Connection, table: QueueTable) -> None:
    for _ in range(3):
        store(connection, NOON + 5 * HOUR, DeliverAt=NOON)
    told = clock_skew.read(connection, table.address)
    assert told is not None
    assert (told.zone, told.told_by) == (timedelta(hours=5), 3)


@pytest.mark.parametrize("headers", ["", "null", "not json", '{"NServiceBus.DeliverAt": "soon"}', "[]"])
def test_headers_that_cannot_be_read_tell_nothing(connection: Connection, table: QueueTable, headers: str) -> None:
    connection.run(
        """insert into "Sales.Delayed" (headers, due) values (%(headers)s, now())""",
        {"headers": headers + ' "NServiceBus.DeliverAt"'},
    )
    assert clock_skew.read(connection, table.address) is None


def test_the_sampler_takes_the_zone_off(connection: Connection, table: QueueTable, database: str, connect) -> None:  # type: ignore[no-untyped-def]
    """Stored from New York and due an hour ago: read as UTC, it would seem due in four hours."""
    store(connection, NOON - HOUR + timedelta(hours=5), DeliverAt=NOON - HOUR)
    assert depth.measure(connection, table, now=NOON).overdue == 0
    sampler = Sampler(lambda: connect(database, read_only=True), ["public"])
    (sample,) = [each for each in sampler.sample(NOON) if each.table.address == table.address]
    assert sample.depth is not None
    assert (sample.depth.overdue, sample.depth.next_due_at) == (1, NOON - HOUR)
    sampler.close()


@pytest.mark.parametrize(
    ("overdue", "soonest", "since"),
    [
        (0, NOON + HOUR, None),
        (3, NOON - timedelta(seconds=60), None),  # a mover may pause that long
        (3, NOON - HOUR, NOON - HOUR),
        (None, None, None),
    ],
)
def test_since_when_nobody_moves_what_is_due(
    overdue: int | None, soonest: datetime | None, since: datetime | None
) -> None:
    assert delayed.unmoved_since(overdue, soonest, NOON) == since
