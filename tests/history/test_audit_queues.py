"""Foreign queues get no column of ours: which numbers are decided depends on who still writes."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.plan import planning, safe_upper_bound
from pgqueue_admin.models import HistoryBatch, HistorySource
from tests.history.tables import audit, put, read, told

Connect = Callable[[str], Any]


def test_an_audit_queue_waits_for_its_writers(database: Any, console_database: str, connect: Connect) -> None:
    """We may add no column there: a number is decided once all writers that may hold a lower one have ended."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        pid, began = slow.one("select pg_backend_pid() as pid, now() at time zone 'utc' as began")
        assert planning.plan_batch(database, source) is None
        source.refresh_from_db()
        assert f"is open since {began:%Y-%m-%d %H:%M:%S} UTC (process {pid})" in source.blocked_reason
    assert read(database, source) == [1, 2]
    assert read(database, source) == []


def test_an_audit_queue_that_is_never_left_alone_is_read(
    database: Any, console_database: str, connect: Connect
) -> None:
    """There is always a writer, but those that began after the highest number was seen need no waiting."""
    source, found = audit(database), list[int]()
    put(database)
    one, other = connect(console_database), connect(console_database)
    one.run("begin")
    put(one)
    for _ in range(3):
        found += read(database, source)
        other.run("begin")
        put(other)
        one.run("commit")
        one, other = other, one
    found += read(database, source)
    assert found == [1, 2, 3], "one behind those who write"
    assert HistorySource.objects.exclude(watermark=None).filter(pk=source.pk).exists()
    one.run("commit")
    assert found + read(database, source) == [1, 2, 3, 4, 5]


def test_a_driver_that_dies_while_it_waits_has_not_seen_less(
    database: Any, console_database: str, connect: Connect
) -> None:
    """The next one waits for the same writers; the ledger stores all it needs."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        assert planning.plan_batch(database, source) is None
        again = HistorySource.objects.get(pk=source.pk)
        assert (again.candidate_max_seq, len(again.open_transactions)) == (2, 1)
        assert planning.plan_batch(database, again) is None
    assert read(database, again) == [1, 2]


def test_open_transaction_on_a_partition_is_waited_for(database: Any, console_database: str, connect: Connect) -> None:
    """A writer to a partition locks only that partition, but its number comes from the parent's sequence."""
    source, late = audit(database), connect(console_database)
    database.run("create table of_today () inherits (audit)")
    late.run("begin")
    put(late, "of_today")
    put(database)
    assert planning.plan_batch(database, source) is None
    assert "is open since" in told(source)
    late.run("commit")
    assert read(database, source) == [1, 2]


@pytest.mark.usefixtures("console_database")
def test_prepared_transaction_is_waited_for_across_a_server_restart(restarted: PostgreSQL, connect: Connect) -> None:
    """After the restart it has no process and another name, but its row still appears at its commit."""
    database = connect(restarted.dsn())
    source = audit(database)
    database.run("begin")
    put(database)
    database.run("prepare transaction 'late one'")
    put(database)
    assert planning.plan_batch(database, source) is None
    assert "(prepared as late one)" in told(source)
    restarted.stop()
    restarted.start()
    database = connect(restarted.dsn())
    prepared = database.value("select prepared from pg_prepared_xacts")
    assert planning.plan_batch(database, source) is None
    assert f"is open since {prepared:%Y-%m-%d %H:%M:%S} UTC (prepared as late one)" in told(source)
    database.run("commit prepared 'late one'")
    assert read(database, source) == [1, 2]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_rows_of_one_number_are_of_one_batch(most: int, database: Any) -> None:
    """The owner restarted the numbers. A batch reads a range of numbers: split, it would get too many rows."""
    source = audit(database)
    for _ in range(3):
        put(database)
    database.run("alter table audit drop constraint if exists audit_seq_key; drop index if exists audit_seq_key")
    database.run("insert into audit (id, seq, headers, body) values (gen_random_uuid(), 2, '{}', '')")
    assert read(database, source, most) == [1, 2, 2, 3]
    batches = HistoryBatch.objects.order_by("pk")
    assert sum(each.rows for each in batches) == 4
    assert all(one.seq_hi < next_one.seq_lo for one, next_one in pairwise(batches))


def test_where_a_table_lies_is_told_with_its_partitions(database: Any) -> None:
    """For each batch too, as of its planning."""
    source = audit(database)
    put(database)
    batch = planning.plan_batch(database, source)
    assert batch is not None
    assert "are still there" in safe_upper_bound.batch_blocking_reason(database, batch, batch.rows - 1)
    database.run("delete from audit")
    assert safe_upper_bound.batch_blocking_reason(database, batch, batch.rows - 1) == "", "its owner took it"
    database.run("create table part () inherits (audit)")
    parted = database.value(postgresql().history.relfilenodes(), {"table": source.table})
    database.run("vacuum full part")
    assert database.value(postgresql().history.relfilenodes(), {"table": source.table}) != parted
    assert safe_upper_bound.batch_blocking_reason(database, batch, batch.rows) == ""
    assert "rewritten" in safe_upper_bound.batch_blocking_reason(database, batch, batch.rows - 1)


def test_a_vacuum_is_not_waited_for(database: Any, console_database: str, connect: Connect) -> None:
    """It may take hours and writes no row."""
    cleaning, source = connect(console_database), audit(database)
    put(database)
    with cleaning.transaction():
        cleaning.run("lock table audit in share update exclusive mode")
        assert read(database, source) == [1]


def test_a_role_that_only_looks_can_tell(database: Any, console_database: str, connect: Connect) -> None:
    """It sees only the definition of the sequence; schemas that it may not enter are not read."""
    source = audit(database)
    put(database)
    for statement in ("create schema hidden", "create sequence hidden.numbers", "create role only_looks_history"):
        database.run(statement)
    database.run("grant select on audit to only_looks_history")
    looking = connect(console_database)
    looking.run("set role only_looks_history")
    try:
        assert read(looking, source) == [1]
    finally:
        database.run("drop owned by only_looks_history; drop role only_looks_history")
