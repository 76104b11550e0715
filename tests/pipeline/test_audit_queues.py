"""Queues that are not ours get no column: which of their numbers are decided is told by who still writes."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded import places
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.pipeline import deciding, ledger, planning
from pgqueue_admin.records.models import HistoryBatch, HistorySource
from pgqueue_admin.transport.table_queue import TableQueue
from tests import in_memory
from tests.pipeline.tables import audit, put, read

Connect = Callable[[str], Any]


def test_an_audit_queue_waits_for_its_writers(database: Any, console_database: str, connect: Connect) -> None:
    """We may add no column there: a number is decided when those have ended who may have a lower one."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        pid, began = slow.one("select pg_backend_pid() as pid, now() at time zone 'utc' as began")
        assert planning.plan(database, source) is None
        source.refresh_from_db()
        assert f"is open since {began:%Y-%m-%d %H:%M:%S} UTC (process {pid})" in source.note
    assert read(database, source) == [1, 2]
    assert read(database, source) == []


def test_an_audit_queue_that_is_never_left_alone_is_read(
    database: Any, console_database: str, connect: Connect
) -> None:
    """There is always somebody who writes; whoever came after the highest number was seen need not be waited for."""
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
    assert HistorySource.objects.exclude(complete_to=None).filter(pk=source.pk).exists()
    one.run("commit")
    assert found + read(database, source) == [1, 2, 3, 4, 5]


def test_a_driver_that_dies_while_it_waits_has_not_seen_less(
    database: Any, console_database: str, connect: Connect
) -> None:
    """The next one waits for the same writers; all that the ledger knows of it is in the ledger."""
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        assert planning.plan(database, source) is None
        again = HistorySource.objects.get(pk=source.pk)
        assert (again.head, len(again.writers)) == (2, 1)
        assert planning.plan(database, again) is None
    assert read(database, again) == [1, 2]


@pytest.fixture
def restarted() -> Iterator[PostgreSQL]:
    """A server of the queues alone, that a test may restart."""
    root = Path(tempfile.mkdtemp(prefix="pgqueue-cluster-", dir=in_memory.folder()))
    root.chmod(0o755)
    server = PostgreSQL(root / "postgresql", conf={"fsync": "off"})
    server.start()
    yield server
    server.stop()
    places.remove(root / "postgresql")
    shutil.rmtree(root, ignore_errors=True)


@pytest.mark.usefixtures("console_database")
def test_a_prepared_transaction_is_waited_for_though_the_server_was_restarted(
    restarted: PostgreSQL, connect: Connect
) -> None:
    """Then it has no process and another name, and still its row comes when it is committed."""
    database = connect(restarted.dsn())
    source = audit(database)
    database.run("begin")
    put(database)
    database.run("prepare transaction 'late one'")
    put(database)
    assert planning.plan(database, source) is None
    assert "(prepared as late one)" in told(source)
    restarted.stop()
    restarted.start()
    database = connect(restarted.dsn())
    prepared = database.value("select prepared from pg_prepared_xacts")
    assert planning.plan(database, source) is None
    assert f"is open since {prepared:%Y-%m-%d %H:%M:%S} UTC (prepared as late one)" in told(source)
    database.run("commit prepared 'late one'")
    assert read(database, source) == [1, 2]


def told(source: HistorySource) -> str:
    """What the ledger says of it now."""
    source.refresh_from_db()
    return source.note


@pytest.mark.parametrize("most", [1, 2, 3])
def test_rows_of_one_number_are_of_one_batch(most: int, database: Any) -> None:
    """Their owner began the numbers anew. What a batch reads lies between two numbers: it would have rows too many."""
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
    """And of each batch, as it was when it was planned."""
    source = audit(database)
    put(database)
    batch = planning.plan(database, source)
    assert batch is not None
    assert deciding.why_not_of_it(database, batch, is_short=True) == ""
    database.run("create table part () inherits (audit)")
    parted = database.value(postgresql().pipeline.table_files(), {"table": source.table})
    database.run("vacuum full part")
    assert database.value(postgresql().pipeline.table_files(), {"table": source.table}) != parted
    assert deciding.why_not_of_it(database, batch, is_short=False) == ""
    assert "rewritten" in deciding.why_not_of_it(database, batch, is_short=True)


def test_a_vacuum_is_not_waited_for(database: Any, console_database: str, connect: Connect) -> None:
    """It may take hours, and writes no row."""
    cleaning, source = connect(console_database), audit(database)
    put(database)
    with cleaning.transaction():
        cleaning.run("lock table audit in share update exclusive mode")
        assert read(database, source) == [1]


def test_a_role_that_only_looks_can_tell(database: Any, console_database: str, connect: Connect) -> None:
    """Of the sequence it sees only how it is made; what lies in schemas that it may not enter is not asked for."""
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


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("alter sequence audit_seq_seq cache 20", "hands 20 numbers at once"),
        ("with gone as (delete from audit) select setval('audit_seq_seq', 1)", "its numbers began anew"),
        ("truncate audit restart identity", "its sequence was restarted"),
    ],
)
def test_numbers_that_say_nothing_are_not_gone_by(change: str, why: str, database: Any) -> None:
    """Rather a warning that it stands still than rows that are missing, and nobody told."""
    source = audit(database)
    for _ in range(3):
        put(database)
    assert read(database, source) == [1, 2, 3]
    source.refresh_from_db()
    before = source.complete_to
    database.run(change)
    put(database)
    assert planning.plan(database, source) is None
    source.refresh_from_db()
    assert why in source.note
    assert source.complete_to == before


def made_anew(database: Any) -> None:
    database.run("drop table audit")
    TableQueue(postgresql(), Address("public", "audit")).create(database)


def emptied(database: Any) -> None:
    database.run("truncate audit restart identity")


@pytest.mark.parametrize(
    ("begin_anew", "why"),
    [
        (made_anew, "another table than the one that was read up to number 1"),
        (emptied, "up to number 1 its sequence was restarted"),
    ],
)
def test_numbers_that_began_anew_and_are_past_what_was_read_are_noticed(
    begin_anew: Callable[[Any], None], why: str, database: Any
) -> None:
    """Between two looks, with more rows than there were: the first of them would never be read."""
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    begin_anew(database)
    for _ in range(3):
        put(database)
    source.refresh_from_db()
    assert planning.plan(database, source) is None
    source.refresh_from_db()
    assert why in source.note
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/history.md says
    source.refresh_from_db()
    assert read(database, source) == [1, 2, 3]


def rests_until_somebody_says(begin_anew: Callable[[Any], None], database: Any, source: HistorySource) -> None:
    """Its numbers begin anew with three rows; none is read before somebody says that all are new, then each is."""
    begin_anew(database)
    for _ in range(3):
        put(database)
    assert planning.plan(database, source) is None
    assert "before somebody says which" in told(source)
    HistorySource.objects.update(oid=None, seq_done=0)
    source.refresh_from_db()
    assert read(database, source) == [1, 2, 3]


@pytest.mark.parametrize("begin_anew", [made_anew, emptied])
def test_a_batch_that_was_planned_before_numbers_began_anew_is_planned_anew(
    begin_anew: Callable[[Any], None], database: Any
) -> None:
    """Its range is of rows that are gone; rows of other messages have these numbers now."""
    source = audit(database)
    put(database)
    left_open = planning.plan(database, source)
    assert left_open is not None
    rests_until_somebody_says(begin_anew, database, source)
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


@pytest.mark.parametrize("begin_anew", [made_anew, emptied])
def test_a_number_that_was_seen_before_numbers_began_anew_is_looked_for_anew(
    begin_anew: Callable[[Any], None], database: Any, console_database: str, connect: Connect
) -> None:
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        assert planning.plan(database, source) is None
    assert told(source)
    assert source.head == 2
    rests_until_somebody_says(begin_anew, database, source)


def test_what_the_operator_said_while_a_batch_was_read_stays_said(database: Any) -> None:
    """The batch is of the table that was; from its start the one that is now is read."""
    source = audit(database)
    put(database)
    batch = planning.plan(database, source)
    assert batch is not None
    token = ledger.begin(batch, "test")
    made_anew(database)
    put(database)
    HistorySource.objects.update(oid=None, seq_done=0)
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, token, 1, {}, [], [])
    source.refresh_from_db()
    assert (source.oid, source.seq_done) == (None, 0)
    assert read(database, source) == [1]
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


def test_numbers_that_went_back_are_not_gone_on_with_when_they_are_past_what_was_read(database: Any) -> None:
    """A standby that lagged was promoted, or somebody called setval: rows of low numbers came anew, and more since."""
    source = audit(database)
    for _ in range(3):
        put(database)
    assert read(database, source) == [1, 2, 3]
    database.run("with gone as (delete from audit) select setval('audit_seq_seq', 1)")
    put(database)  # 2
    assert planning.plan(database, source) is None
    assert "its numbers began anew" in told(source)
    for _ in range(3):
        put(database)  # 3 to 5
    assert planning.plan(database, source) is None
    assert "its numbers began anew" in told(source)
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/history.md says
    source.refresh_from_db()
    assert read(database, source) == [2, 3, 4, 5]


def test_a_sequence_that_was_set_back_to_its_start_is_noticed(database: Any) -> None:
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    database.run("with gone as (delete from audit) select setval('audit_seq_seq', 1, false)")
    source.refresh_from_db()
    assert planning.plan(database, source) is None
    assert "its numbers began anew" in told(source)


@pytest.mark.parametrize("kept", ["vacuum full audit", "truncate audit", "select setval('audit_seq_seq', 7)"])
def test_a_table_that_is_rewritten_or_emptied_is_gone_on_with(kept: str, database: Any) -> None:
    """Its numbers go on, so nothing is missed."""
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    database.run(kept)
    put(database)
    source.refresh_from_db()
    assert len(read(database, source)) == 1
