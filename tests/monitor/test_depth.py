"""C2: depth = ready + in flight + expired, measured without locking a row."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import TableMissing
from pgqueue_admin.monitor import depth
from pgqueue_admin.monitor.depth_result import QueueDepth
from tests.monitor.tables import fill, found, looking_as, made, make, take

Connect = Callable[..., Connection]


def test_two_rows_far_apart_are_two(connection: Connection) -> None:
    table = made(connection)
    fill(connection, table.address, 2, seq="case i when 1 then 1 else 10000 end")
    seen = depth.measure(connection, table)
    assert (seen.depth, seen.span, seen.how) == (2, 10_000, "counted")


def test_in_flight_is_counted_apart(connection: Connection, database: str, connect: Connect) -> None:
    table, receiver = made(connection, 5), connect(database)
    with receiver.transaction():
        take(receiver, table, 3)
        seen = depth.measure(connection, table)
        assert (seen.depth, seen.ready, seen.in_flight) == (5, 2, 3)
        assert (seen.head_seq, seen.ready_seq) == (1, 4)
    assert depth.measure(connection, table).depth == 2


def test_in_flight_is_counted_of_a_prepared_transaction_too(connection: Connection) -> None:
    """It has no session: with two-phase commit an endpoint holds its messages until the commit is decided."""
    table = made(connection, 5)
    connection.run("begin")
    take(connection, table, 3)
    connection.run("prepare transaction 'received'")
    try:
        seen = depth.measure(connection, table)
        assert (seen.depth, seen.ready, seen.in_flight) == (5, 2, 3)
    finally:
        connection.run("rollback prepared 'received'")


def test_message_that_expires_in_flight_is_counted_once(
    connection: Connection, database: str, connect: Connect
) -> None:
    """Counting it as expired too would give minus three ready messages."""
    table, receiver = made(connection), connect(database)
    fill(connection, table.address, 5, expires="now() at time zone 'utc' - interval '1 hour'")
    with receiver.transaction():
        take(receiver, table, 3)
        seen = depth.measure(connection, table)
        assert (seen.depth, seen.ready, seen.in_flight, seen.expired) == (5, 0, 3, 2)


def test_after_a_rollback_nothing_is_in_flight(connection: Connection, database: str, connect: Connect) -> None:
    table, receiver = made(connection, 5), connect(database)
    receiver.run("begin")
    take(receiver, table, 3)
    receiver.run("rollback")
    seen = depth.measure(connection, table)
    assert (seen.depth, seen.ready, seen.in_flight) == (5, 5, 0)


def test_an_expired_message_is_not_ready(connection: Connection) -> None:
    table = made(connection, 2)
    fill(connection, table.address, 3, expires="timestamp '2000-01-01'")
    fill(connection, table.address, 1, expires="'infinity'::timestamp")
    seen = depth.measure(connection, table)
    assert (seen.depth, seen.ready, seen.expired) == (6, 3, 3)


def test_an_empty_queue(connection: Connection) -> None:
    seen = depth.measure(connection, made(connection))
    assert (seen.depth, seen.span, seen.head_seq, seen.sent_total) == (0, 0, None, 0)


def test_past_the_cap_the_share_of_probes_tells(connection: Connection) -> None:
    """Half of the rows are deleted: the span says 60,000, the probes about 30,000."""
    table = made(connection, 60_000)
    connection.run('delete from "Q" where seq % 2 = 0 and seq < 60000')
    seen = depth.measure(connection, table)
    assert seen.how == "estimate"
    assert seen.span == 60_000
    assert seen.depth == pytest.approx(30_000, rel=0.15)
    assert depth.measure(connection, table).depth == seen.depth  # the same places are probed each time


def test_a_span_beyond_the_cap_that_holds_few_is_counted(connection: Connection) -> None:
    table = made(connection, 40_000)
    connection.run('delete from "Q" where seq % 10 > 0 and seq < 40000')
    seen = depth.measure(connection, table)
    assert (seen.how, seen.depth) == ("counted", 4_000)


def test_depth_without_a_telling_probe_is_at_least_the_cap(connection: Connection) -> None:
    table = made(connection, 500)
    connection.run('alter table "Q" alter column seq type bigint')
    fill(connection, table.address, 1, seq="9000000000")
    seen = depth.measure(connection, found(connection, table.address), cap=100)
    assert (seen.how, seen.depth) == ("capped", 100)


def parted(seen: QueueDepth) -> tuple[int, int, int | None, int]:
    return seen.depth, seen.ready, seen.in_flight, seen.expired


def test_ready_in_flight_and_expired_add_up_at_the_cap(connection: Connection, database: str, connect: Connect) -> None:
    table, receiver = made(connection), connect(database)
    fill(connection, table.address, 110, expires="timestamp '2000-01-01'")
    fill(connection, table.address, 3, seq="9000000 + i")
    seen = depth.measure(connection, table, cap=100)
    assert (seen.how, parted(seen)) == ("capped", (100, 0, 0, 100))
    with receiver.transaction():
        take(receiver, table, 105)
        seen = depth.measure(connection, table, cap=100)
    assert (seen.how, parted(seen)) == ("capped", (100, 0, 100, 0))


def test_ready_in_flight_and_expired_add_up_past_the_cap(
    connection: Connection, database: str, connect: Connect
) -> None:
    table, receiver = made(connection), connect(database)
    fill(connection, table.address, 20_000, expires="timestamp '2000-01-01'")
    with receiver.transaction():
        take(receiver, table, 500)
        seen = depth.measure(connection, table)
    assert (seen.how, parted(seen)) == ("estimate", (20_000, 0, 500, 19_500))


def test_a_widened_seq(connection: Connection) -> None:
    """Head and tail 2^31 apart make an endpoint's own peek fail (wire sheet 2.8); measuring does not."""
    address = make(connection)
    connection.run('alter table "Q" alter column seq type bigint')
    fill(connection, address, 2, seq="i * 2147483648")
    seen = depth.measure(connection, found(connection, address))
    assert (seen.depth, seen.span) == (2, 2**31 + 1)


def test_below_the_low_water_nothing_is_looked_for(connection: Connection) -> None:
    table = made(connection, 10)
    assert depth.measure(connection, table, low_water=8).depth == 3


def test_a_table_without_index_is_read_up_to_the_cap(connection: Connection) -> None:
    made(connection, 500)
    connection.run('create table "Copy" as select * from "Q"')
    copy = found(connection, Address("public", "Copy"))
    assert depth.measure(connection, copy).depth == 500
    capped = depth.measure(connection, copy, cap=100)
    assert (capped.how, capped.depth) == ("capped", 100)
    assert (capped.head_seq, capped.tail_seq, capped.span) == (None, None, 0), "of those that were read"


def test_a_message_without_any_value_is_one(connection: Connection) -> None:
    made(connection, 5)
    connection.run('create table "Copy" as select * from "Q"')
    connection.run('update "Copy" set id = null where seq > 2')
    assert depth.measure(connection, found(connection, Address("public", "Copy"))).depth == 5


def test_which_rows_lie_below_a_number(connection: Connection) -> None:
    table = made(connection, 20_300)
    connection.run('delete from "Q" where seq between 101 and 10100')
    seen = depth.measure(connection, table)
    assert (seen.how, seen.marks[:4]) == ("estimate", (1, 51, 10_101, 10_151))
    assert [round(seen.below(seq)) for seq in (1, 26, 51, 10_101, 10_126)] == [0, 25, 50, 100, 125]
    assert seen.below(20_301) == pytest.approx(10_300, rel=0.1)


def test_a_vanished_table_is_an_error_of_ours(connection: Connection) -> None:
    table = made(connection)
    connection.run('drop table "Q"')
    with pytest.raises(TableMissing, match="gone"):
        depth.measure(connection, table)


def test_delayed_messages_by_the_writers_zone(connection: Connection) -> None:
    """Wire sheet 3: a writer in New York reads the UTC wall clock as New York's; 60 s became 5 h 1 min."""
    connection.run(
        'create table "Q.Delayed" (id uuid primary key default gen_random_uuid(), headers text not null, body bytea,'
        " due timestamptz not null)"
    )
    connection.run("""insert into "Q.Delayed" (headers, due) values ('{}', '2026-11-20 22:36:00+00')""")
    table = made(connection)
    assert table.delayed is not None
    seen = depth.measure(connection, found(connection, table.delayed), skew=timedelta(hours=5))
    assert seen.next_due_at
    assert seen.next_due_at.isoformat() == "2026-11-20T17:36:00+00:00"


def test_looking_locks_nothing(connection: Connection, database: str, connect: Connect) -> None:
    table, looker = made(connection, 100), connect(database, read_only=True)
    with looker.transaction():
        depth.measure(looker, table)
        mine = {"pid": looker.value("select pg_backend_pid()")}
        modes = connection.all("select distinct mode from pg_locks where pid = %(pid)s and relation is not null", mine)
    assert [row.mode for row in modes] == ["AccessShareLock"]


def test_select_alone_is_enough(connection: Connection, database: str, connect: Connect) -> None:
    """A role that may read the table but not its sequence gets every figure except the total sent."""
    table = made(connection, 3)
    connection.run("create role only_looks_depth")
    connection.run('grant select on "Q" to only_looks_depth')
    looker = looking_as("only_looks_depth", connect, database)
    try:
        seen = depth.measure(looker, found(looker, table.address))
        assert (seen.depth, seen.sent_total) == (3, None)
    finally:
        looker.close()
        connection.run("drop owned by only_looks_depth")
        connection.run("drop role only_looks_depth")
