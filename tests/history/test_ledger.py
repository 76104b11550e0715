"""Nothing is missed and nothing read twice, despite late commits and other drivers: the ledger alone, no Spark."""

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.query import literal
from pgqueue_admin.formatting.fingerprint import TRACE_MOST
from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.size_limits import MESSAGE_MOST
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch, HistorySource, RetryOutcome
from tests.history.rollup_factory import figures
from tests.history.tables import audit, died, read
from tests.waiting import PATIENCE, until

Connect = Callable[[str], Any]
TEXTS = ("message_id", "queue", "endpoint", "type", "exception")


def test_a_lower_number_that_commits_late_is_read_later(database: Any, console_database: str, connect: Connect) -> None:
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)
        died(database)
        assert read(database, archive) == [2]
    assert read(database, archive) == [1]
    assert read(database, archive) == []


def test_a_range_is_read_in_parts_and_each_once(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 25)
    assert read(database, archive, most=10) == list(range(1, 26))
    died(database, 3)
    assert read(database, archive, most=10) == [26, 27, 28]


def test_late_commit_within_a_range_comes_with_the_next_batch(
    database: Any, console_database: str, connect: Connect
) -> None:
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)  # 1
        died(database, 6)
        batch = planning.plan_batch(database, archive, 4)
        assert batch is not None
        assert (batch.seq_lo, batch.seq_hi, batch.rows) == (2, 5, 4)
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
    archive.refresh_from_db()
    assert read(database, archive, most=4) == [6, 7, 1]


def test_rolled_back_row_plans_no_batch(database: Any) -> None:
    (archive,) = sources(database)
    database.run("begin")
    died(database)
    database.run("rollback")
    assert planning.plan_batch(database, archive) is None


def test_rows_read_are_not_scanned_again_while_a_transaction_is_open(
    database: Any, console_database: str, connect: Connect
) -> None:
    """With a transaction open for hours, each look must not scan everything read since it began."""
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)
        database.run(MANY)
        database.run("analyze messages.message_archive")
        assert len(read(database, archive, most=100_000)) == 20_000
        died(database, 2)
        assert rows_passed_over(database, archive) < 50
        assert read(database, archive) == [20_002, 20_003]
    assert rows_passed_over(database, archive) < 50, "and when it has ended"
    assert read(database, archive) == [1]


def test_large_backlog_is_read_by_index(database: Any) -> None:
    """PostgreSQL by itself would scan it all, as half of it is new. The next batch continues where the first ended."""
    (archive,) = sources(database)
    database.run(MANY)
    read(database, archive, most=100_000)
    database.run(MANY)
    database.run("analyze messages.message_archive")
    database.run("set random_page_cost = 1000")  # makes it plan as for millions of rows with 4
    archive.refresh_from_db()
    before = looks(database)
    assert planned(database, archive, most=15_000) == 15_000
    first = looks(database)
    database.run("reset random_page_cost")
    assert planned(database, archive, most=1_000) == 1_000
    second = looks(database)
    assert first.whole == second.whole == before.whole
    assert first.by_xid == second.by_xid == before.by_xid + 1
    assert first.by_seq - before.by_seq < 10, "but for what the planner asks of the index"
    assert 1_000 <= second.by_seq - first.by_seq < 1_010
    assert (database.value("show enable_seqscan"), database.value("show enable_indexscan")) == ("on", "on")


def planned(database: Any, archive: HistorySource, most: int) -> int:
    """Plan and end the next batch; return its number of rows."""
    batch = planning.plan_batch(database, archive, most)
    assert batch
    ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [], [])
    archive.refresh_from_db()
    return batch.rows


def looks(database: Any) -> Any:
    """So far: full scans of the archive, scans by transaction, and rows found by number."""
    database.value("select pg_stat_force_next_flush()")
    (found,) = database.all("""
        select pg_stat_get_numscans('messages.message_archive'::regclass) as whole,
            pg_stat_get_numscans('messages.message_archive_xid'::regclass) as by_xid,
            pg_stat_get_tuples_returned('messages.message_archive_seq'::regclass) as by_seq
        """)
    return found


MANY = """
insert into messages.message_archive (created_at, message, result, handled_by, headers)
select now(), '{}', 'success', 'x', repeat('x', 1000) from generate_series(1, 20000)
"""


def rows_passed_over(database: Any, archive: HistorySource) -> int:
    """Rows that the query for the next batch reads and discards."""
    params = {"a": archive.snapshot, "b": database.value("select pg_current_snapshot()::text"), "done": 0, "most": 100}
    statements = postgresql().history
    next_ = statements.archive_next(between=statements.between_snapshots, bytes=statements.bytes_unknown)
    query = literal(database, next_, params)
    plan = "\n".join(row[0] for row in database.all(f"explain (analyze) {query}"))
    return sum(map(int, re.findall(r"Rows Removed by \w+(?: Recheck)?: (\d+)", plan)))


def test_a_plan_may_take_longer_than_a_page(database: Any, console_database: str, connect: Connect) -> None:
    """With many old rows it does; here a lock guarantees it."""
    locking, looking = connect(console_database), connect(console_database)
    looking.run("set statement_timeout = '300ms'")
    (archive,) = sources(database)
    died(database)
    planned: list[Any] = []

    def plan() -> None:
        planned.append(planning.plan_batch(looking, archive))
        connections.close_all()

    planning_it = threading.Thread(target=plan)
    with locking.transaction():
        locking.run("lock table messages.message_archive in access exclusive mode")
        planning_it.start()
        until(lambda: not planning_it.is_alive() or database.value(LATE), what="it takes longer")
    planning_it.join(PATIENCE)
    assert [batch.rows for batch in planned] == [1]
    assert looking.value("show statement_timeout") == "300ms"


LATE = """select exists (select from pg_stat_activity where wait_event_type = 'Lock'
    and datname = current_database() and clock_timestamp() - query_start > interval '0.5 s')"""


def test_an_open_batch_is_replayed_as_planned(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    first = planning.plan_batch(database, archive)
    died(database, 3)
    again = planning.plan_batch(database, archive)
    assert first == again
    assert again is not None
    assert again.rows == 3


def test_an_attempt_that_was_overtaken_commits_nothing(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    lost, newer = ledger.begin(batch, "a"), ledger.begin(batch, "b")
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, lost, 3, {}, [], [])
    ledger.done(batch, newer, 3, {}, [], [])
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, newer, 3, {}, [], [])
    done = HistoryBatch.objects.get()
    assert (done.attempt, done.code_version) == (2, "b")


def test_duplicate_seqs_are_found_without_a_sort(database: Any) -> None:
    """The first one counts, each time it is read. The table has no statistics."""
    queue = audit(database)
    database.run("alter table audit drop constraint if exists audit_seq_key; drop index if exists audit_seq_key")
    database.run("create index on audit (seq)")
    database.run(
        "insert into audit (id, seq, headers, body)"
        " select gen_random_uuid(), n / 2, case when n % 2 = 0 then 'first' else 'second' end, '' from"
        " generate_series(2, 20000) n"
    )
    batch = planning.plan_batch(database, queue)
    assert batch is not None
    (select,) = selects(database, batch, 1)
    assert {(row.headers, row.is_twin) for row in database.all(select)} == {("first", False), ("second", True)}
    assert "Sort" not in "\n".join(row[0] for row in database.all(f"explain {select}"))


def test_of_an_error_no_more_is_read_than_anybody_looks_at(database: Any) -> None:
    """Java has no memory for many errors of megabytes. Both ends of a trace are read."""
    size = 2_000_000
    for said, trace in (("m" * size, "a" * size + "z" * size), ("said", "frames")):
        store.archive_failed(database, DeadMessage(queue="q", headers="{}", exception_message=said, stack_trace=trace))
    batch = planning.plan_batch(database, sources(database)[0])
    assert batch is not None
    (select,) = selects(database, batch, 1)
    first, second = database.all(select)
    assert first.exception_message == "m" * MESSAGE_MOST
    assert first.stack_trace == "a" * TRACE_MOST + "z" * TRACE_MOST
    assert (second.exception_message, second.stack_trace) == ("said", "frames")


class Fed(BatchLoop):
    """While it reads a batch, another message arrives."""

    def __init__(self, feed: Callable[[], None]):
        super().__init__()
        self._feed = feed

    def _run(self, connection: Any, batch: HistoryBatch, is_busy: bool) -> bool:
        self._feed()
        ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
        return True


def test_a_turn_ends_though_more_comes_all_the_time(database: Any) -> None:
    """Otherwise work that follows the last batch, such as compaction, would never run."""

    def feed() -> None:
        if HistoryBatch.objects.count() < 5:
            died(database)

    feed()
    driver = Fed(feed)
    assert [driver.run_once(), driver.run_once()] == [1, 1]
    assert [batch.rows for batch in HistoryBatch.objects.order_by("pk")] == [1, 1]


def test_open_batch_and_new_rows_are_read_in_one_turn(database: Any) -> None:
    died(database)
    (archive,) = sources(database)
    planning.plan_batch(database, archive)
    died(database)
    assert Fed(lambda: None).run_once() == 2


def outcome(text: str) -> RetryOutcome:
    times = {"first_at": datetime(2026, 11, 2, 1, 30, 0, 123456, tzinfo=UTC), "last_failed_at": None}
    return RetryOutcome(**{name: f"{text}{name}" for name in TEXTS}, failed=len(text), succeeded=0, **times)


@pytest.mark.parametrize("others", [[], ["more"] * 3000])
def test_figures_are_kept_as_they_were_counted(database: Any, others: list[str]) -> None:
    """Whatever names contain: rows are streamed as text, and no content ends a row."""
    (archive,) = sources(database)
    died(database)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    texts = ["a\tb", "a\nb", "\\N", "\\.", "", '"', "Zürich\r", *others]
    outcomes = [outcome(text) for text in texts]
    told = figures(outcomes)
    ledger.done(batch, ledger.begin(batch, "test"), 1, {}, [], [told])
    kept = RetryOutcome.objects.filter(batch=batch).order_by("pk")
    assert list(kept.values_list(*told.names)) == [attrgetter(*told.names)(each) for each in outcomes]
