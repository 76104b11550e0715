"""The archive of oliverlambson/pgmq: read by number, and continued by transaction once adopted."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning, safe_upper_bound
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.models import DataFile, HistoryBatch, HistorySource
from tests.archive.test_schema import ORIGINAL
from tests.history.tables import died, read

Connect = Callable[[str], Any]
NONE_OF_OURS = "drop schema messages cascade; drop type public.message_status cascade"
EMPTIED = "truncate messages.message_archive restart identity"


@pytest.fixture
def original(database: Any) -> HistorySource:
    """The ledger's source of an archive without rows."""
    for statement in (NONE_OF_OURS, ORIGINAL, EMPTIED):
        database.run(statement)
    (source,) = sources(database)
    assert (source.table, source.cursor_kind) == (ARCHIVE, "numbers")
    return source


def finished(connection: Any, number: int = 1) -> None:
    """Archive a row as the original's client does."""
    for _ in range(number):
        connection.run(
            "insert into messages.message_archive (created_at, archived_at, message, result, handled_by)"
            """ values ('2026-11-14 10:00', '2026-11-14 10:01', '["ok"]', 'success', 'worker')"""
        )


def adopted(connection: Any) -> None:
    assert schema.install(connection, adopt=True, warn=lambda _: None).did == "adopted"


def told(source: HistorySource) -> str:
    source.refresh_from_db()
    return source.blocked_reason


def rows_of(connection: Any, batch: HistoryBatch | None) -> list[Any]:
    assert batch is not None
    return [row for part in selects(connection, batch, 1) for row in connection.all(part)]


def test_original_archive_is_read_by_number_behind_open_writers(
    original: HistorySource, database: Any, console_database: str, connect: Connect
) -> None:
    slow = connect(console_database)
    with slow.transaction():
        finished(slow)
        finished(database, 2)
        assert planning.plan_batch(database, original) is None
        assert "A transaction that writes to it is open" in told(original)
    assert read(database, original, most=2) == [1, 2, 3]
    assert read(database, original) == []
    finished(database)
    original.refresh_from_db()
    assert read(database, original) == [4]


def test_rows_are_equal_before_and_after_adoption(original: HistorySource, database: Any) -> None:
    """Except for the columns that adoption adds."""
    finished(database)
    (before,) = rows_of(database, planning.plan_batch(database, original))
    assert (before.seq, before.endpoint, before.result) == (1, "worker", "success")
    assert before.ended_at == datetime(2026, 11, 14, 10, 1, tzinfo=UTC)
    adopted(database)
    assert rows_of(database, planning.plan_batch(database, original)) == [before]


def test_adopted_it_is_gone_on_with_and_no_row_is_read_twice(
    original: HistorySource, database: Any, console_database: str, connect: Connect
) -> None:
    """Its rows keep their numbers; later ones are higher, even if the last ones were deleted."""
    late = connect(console_database)
    finished(database, 3)
    assert read(database, original) == [1, 2, 3]
    finished(database, 2)
    database.run("delete from messages.message_archive where id in (1, 5)")
    adopted(database)
    with late.transaction():
        died(late)  # 6
        died(database)  # 7
        assert read(database, original) == [4, 7]
    assert original.cursor_kind == "snapshots"
    assert read(database, original) == [6]
    died(database)
    assert read(database, original) == [8]
    assert read(database, original) == []


def test_in_parts_too(original: HistorySource, database: Any) -> None:
    finished(database, 10)
    batch = planning.plan_batch(database, original, 4)
    assert batch is not None
    ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
    original.refresh_from_db()
    adopted(database)
    died(database, 3)
    assert read(database, original, most=4) == [5, 6, 7, 8, 9, 10, 11, 12, 13]


def test_archive_adopted_before_the_first_read_is_read_whole(original: HistorySource, database: Any) -> None:
    finished(database, 3)
    adopted(database)
    assert read(database, original) == [1, 2, 3]


def test_a_batch_that_was_planned_by_number_is_planned_anew_by_transaction(
    original: HistorySource, database: Any
) -> None:
    finished(database, 2)
    batch = planning.plan_batch(database, original)
    assert batch is not None
    token = ledger.begin(batch, "test")
    assert safe_upper_bound.batch_blocking_reason(database, batch, batch.rows) == ""
    adopted(database)
    assert "engine_schema has adopted its table" in safe_upper_bound.batch_blocking_reason(database, batch, batch.rows)
    other = HistorySource.objects.get()
    assert read(database, other) == [1, 2]
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, token, 2, {}, [], [])
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]
    assert "engine_schema has adopted its table" in HistoryBatch.objects.get(state="abandoned").error


def test_recreated_archive_is_not_taken_for_the_former_one(original: HistorySource, database: Any) -> None:
    """Even if it was adopted before anything was read."""
    finished(database, 2)
    assert read(database, original) == [1, 2]
    for statement in (NONE_OF_OURS, ORIGINAL, EMPTIED):
        database.run(statement)
    finished(database, 3)
    adopted(database)
    assert planning.plan_batch(database, original) is None
    assert "another table than the one that was read up to number 2" in told(original)
    HistorySource.objects.update(oid=None, seq_done=0)  # as docs/how-to/resume-history.md says
    original.refresh_from_db()
    assert read(database, original) == [1, 2, 3]


def test_numbers_that_began_anew_before_it_was_adopted(original: HistorySource, database: Any) -> None:
    finished(database, 2)
    assert read(database, original) == [1, 2]
    database.run(EMPTIED)
    finished(database, 3)
    adopted(database)
    assert planning.plan_batch(database, original) is None
    assert "its sequence was restarted" in told(original)


@pytest.mark.parametrize(
    ("lacking", "left"),
    [("details", ("success", "worker")), ("handled_by", ("success", None)), ("result", (None, "worker"))],
)
def test_columns_that_are_missing_are_null(
    lacking: str, left: tuple[str, str], original: HistorySource, database: Any
) -> None:
    finished(database)
    database.run(f"alter table messages.message_archive drop column {lacking} cascade")
    (row,) = rows_of(database, planning.plan_batch(database, original))
    assert (row.result, row.endpoint) == left
    database.run("alter table messages.message_archive drop column archived_at")
    assert rows_of(database, planning.plan_batch(database, original))[0].ended_at is None


def test_archive_without_a_grant_or_id_column_is_no_source(
    original: HistorySource, database: Any, console_database: str, connect: Connect
) -> None:
    database.run("create role only_looks_at_none")
    looking = connect(console_database)
    looking.run("set role only_looks_at_none")
    try:
        assert sources(looking) == []
        database.run("grant usage on schema messages to only_looks_at_none")
        assert sources(looking) == []
        database.run("grant select on messages.message_archive to only_looks_at_none")
        assert sources(looking) == [original]
    finally:
        database.run("drop owned by only_looks_at_none; drop role only_looks_at_none")
    database.run("alter table messages.message_archive drop column id")
    assert sources(database) == []


def test_original_archive_in_place_of_ours_is_no_source(database: Any) -> None:
    """Its numbers differ, and no rule converts a position by transaction into one by number."""
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    for statement in (NONE_OF_OURS, ORIGINAL):
        database.run(statement)
    assert sources(database) == []


@pytest.mark.spark
def test_each_message_is_in_history_once(
    original: HistorySource, database: Any, driver: Callable[..., BatchLoop], history: Path
) -> None:
    finished(database, 3)
    assert driver().run_once() == 1
    finished(database, 2)
    adopted(database)
    finished(database)
    assert driver().run_once() == 1
    paths = [str(history / file.path) for file in DataFile.objects.filter(dataset="history")]
    found = pyarrow.dataset.dataset(paths).to_table(["source", "seq", "endpoint"]).to_pylist()
    assert sorted(row["seq"] for row in found) == [1, 2, 3, 4, 5, 6]
    assert {(row["source"], row["endpoint"]) for row in found} == {(ARCHIVE, "worker")}
