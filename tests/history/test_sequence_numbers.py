"""Meaningless or restarted numbers: reading stops until an operator says how to continue."""

from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch, HistorySource, Queue
from pgqueue_admin.transport.tables.table_queue import TableQueue
from tests.history.tables import audit, put, read, told

Connect = Callable[[str], Any]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("alter sequence audit_seq_seq cache 20", "hands 20 numbers at once"),
        ("with gone as (delete from audit) select setval('audit_seq_seq', 1)", "its numbers began anew"),
        ("truncate audit restart identity", "its sequence was restarted"),
    ],
)
def test_numbers_that_say_nothing_are_not_gone_by(change: str, why: str, database: Any) -> None:
    """A warning that reading stopped is better than rows missing silently."""
    source = audit(database)
    for _ in range(3):
        put(database)
    assert read(database, source) == [1, 2, 3]
    source.refresh_from_db()
    before = source.watermark
    database.run(change)
    put(database)
    assert planning.plan_batch(database, source) is None
    source.refresh_from_db()
    assert why in source.blocked_reason
    assert source.watermark == before


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
    """Between two reads, with more rows than before: the first of them would never be read."""
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    begin_anew(database)
    for _ in range(3):
        put(database)
    source.refresh_from_db()
    assert planning.plan_batch(database, source) is None
    source.refresh_from_db()
    assert why in source.blocked_reason
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/how-to/resume-history.md says
    source.refresh_from_db()
    assert read(database, source) == [1, 2, 3]


def rests_until_somebody_says(begin_anew: Callable[[Any], None], database: Any, source: HistorySource) -> None:
    """Its numbers restart with three rows; none is read before an operator says that all are new, then each is."""
    begin_anew(database)
    for _ in range(3):
        put(database)
    assert planning.plan_batch(database, source) is None
    assert "before somebody says which" in told(source)
    HistorySource.objects.update(oid=None, seq_done=0)
    source.refresh_from_db()
    assert read(database, source) == [1, 2, 3]


@pytest.mark.parametrize("begin_anew", [made_anew, emptied])
def test_batch_planned_before_seqs_restarted_is_planned_anew(begin_anew: Callable[[Any], None], database: Any) -> None:
    """Its range belongs to deleted rows; other messages have these numbers now."""
    source = audit(database)
    put(database)
    left_open = planning.plan_batch(database, source)
    assert left_open is not None
    rests_until_somebody_says(begin_anew, database, source)
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


@pytest.mark.parametrize("begin_anew", [made_anew, emptied])
def test_seq_seen_before_seqs_restarted_is_looked_for_anew(
    begin_anew: Callable[[Any], None], database: Any, console_database: str, connect: Connect
) -> None:
    slow, source = connect(console_database), audit(database)
    with slow.transaction():
        put(slow)
        put(database)
        assert planning.plan_batch(database, source) is None
    assert told(source)
    assert source.candidate_max_seq == 2
    rests_until_somebody_says(begin_anew, database, source)


def test_operator_reset_during_a_batch_is_kept(database: Any) -> None:
    """The batch is of the old table; the new one is read from its start."""
    source = audit(database)
    put(database)
    batch = planning.plan_batch(database, source)
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


def test_reading_rests_after_seqs_went_back_even_if_past_the_position(database: Any) -> None:
    """A lagging standby was promoted, or setval was called: rows with low numbers came again, and more since."""
    source = audit(database)
    for _ in range(3):
        put(database)
    assert read(database, source) == [1, 2, 3]
    database.run("with gone as (delete from audit) select setval('audit_seq_seq', 1)")
    put(database)  # 2
    assert planning.plan_batch(database, source) is None
    assert "its numbers began anew" in told(source)
    for _ in range(3):
        put(database)  # 3 to 5
    assert planning.plan_batch(database, source) is None
    assert "its numbers began anew" in told(source)
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/how-to/resume-history.md says
    source.refresh_from_db()
    assert read(database, source) == [2, 3, 4, 5]


def test_a_sequence_that_was_set_back_to_its_start_is_noticed(database: Any) -> None:
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    database.run("with gone as (delete from audit) select setval('audit_seq_seq', 1, false)")
    source.refresh_from_db()
    assert planning.plan_batch(database, source) is None
    assert "its numbers began anew" in told(source)


@pytest.mark.parametrize("kept", ["vacuum full audit", "truncate audit", "select setval('audit_seq_seq', 7)"])
def test_a_table_that_is_rewritten_or_emptied_is_gone_on_with(kept: str, database: Any) -> None:
    """Its numbers continue, so nothing is missed."""
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    database.run(kept)
    put(database)
    source.refresh_from_db()
    assert len(read(database, source)) == 1


def test_a_table_that_was_renamed_is_read_on_where_it_was(database: Any) -> None:
    """An old audit queue set aside, and perhaps renamed back. By its messages it is still an audit queue."""
    source = audit(database)
    put(database)
    put(database)
    assert read(database, source) == [1, 2]
    database.run("alter table audit rename to kept")
    Queue.objects.create(schema="public", table="kept", kind="audit")
    put(database, "kept")
    kept = next(each for each in sources(database) if each.table == '"public"."kept"')
    assert read(database, kept) == [3]
    database.run("alter table kept rename to audit")
    put(database)
    source.refresh_from_db()
    assert read(database, source) == [4]


def test_table_created_in_place_of_a_renamed_one_has_its_own_seqs(database: Any) -> None:
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    database.run("alter table audit rename to kept")
    TableQueue(postgresql(), Address("public", "audit")).create(database)
    put(database)
    source.refresh_from_db()
    assert planning.plan_batch(database, source) is None
    assert "another table" in told(source)
    HistorySource.objects.update(oid=None, seq_done=0)
    source.refresh_from_db()
    assert read(database, source) == [1]
