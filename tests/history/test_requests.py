"""Cancel, recompute, retention: through the ledger, and only if it says that files count. No Spark."""

import os
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import django.db
import pytest
from django.contrib.auth.models import User
from django.db import connections, transaction
from django.db.models.functions import Now

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.history import ledger
from pgqueue_admin.history.freshness import LIMIT, HistoryFreshness, stalls
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import is_held, sources
from pgqueue_admin.history.storage.orphan_cleanup import OLD, sweep
from pgqueue_admin.history.storage.retention import retain
from pgqueue_admin.models import (
    AuditEntry,
    DataFile,
    FileBatch,
    HistoryBatch,
    HistorySource,
    database_clock,
    history_requests,
)
from tests.waiting import PATIENCE, until

ANA = User(username="ana")
TODAY = date(2026, 11, 22)


@pytest.fixture
def planned(database: Any) -> HistoryBatch:
    store.archive_failed(database, DeadMessage(queue="q"))
    (archive,) = sources(database)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    return batch


def ended(batch: HistoryBatch, *files: DataFile, kept: int = 1) -> HistoryBatch:
    ledger.done(batch, ledger.begin(batch, "test"), kept, {}, files, [])
    batch.refresh_from_db()
    return batch


def filed(batch: HistoryBatch, folder: Path, name: str, day: date, dataset: str = "history") -> DataFile:
    path = f"v1/batch-1/day={day}/{name}.parquet"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(b"PAR1")
    return DataFile(source=batch.source, path=path, day=day, rows=1, bytes=4, dataset=dataset)


def test_cancelled_batch_commits_nothing_and_is_planned_anew(database: Any, planned: HistoryBatch) -> None:
    token = ledger.begin(planned, "test")
    assert ledger.is_mine(planned, token)
    assert history_requests.cancel(ANA, "console") == (1, 0, 0)
    assert not ledger.is_mine(planned, token)
    with pytest.raises(ledger.Superseded):
        ledger.done(planned, token, 1, {}, [], [])
    ledger.failed(planned, token, "late")
    planned.refresh_from_db()
    assert (planned.state, planned.error) == ("abandoned", "Cancelled by ana.")
    again = planning.plan_batch(database, HistorySource.objects.get())
    assert again is not None
    assert (again.pk != planned.pk, again.seq_lo, again.seq_hi, again.rows) == (True, planned.seq_lo, planned.seq_hi, 1)


def test_committing_batch_is_not_cancelled_and_its_table_not_held(database: Any, planned: HistoryBatch) -> None:
    """Its last transaction commits during Cancel: there is nothing to cancel, and nothing is blocked."""
    said: list[history_requests.CancelResult] = []

    def cancel() -> None:
        said.append(history_requests.cancel(ANA, "console"))
        connections.close_all()

    token = ledger.begin(planned, "test")
    pressing = threading.Thread(target=cancel)
    with transaction.atomic():
        ledger.done(planned, token, 1, {}, [], [])
        pressing.start()
        until(lambda: database.value(WAITS), what="the cancel waits for the batch")
    pressing.join(PATIENCE)
    assert said == [(0, 0, 0)]
    assert not is_held(HistorySource.objects.get())
    assert HistorySource.objects.get().blocked_reason == ""


WAITS = """select exists (select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like '%pgqueue_historybatch%')"""


def test_read_now_skips_dropped_tables(planned: HistoryBatch) -> None:
    """Nothing reads it any more, so the request would never be fulfilled."""
    HistorySource.objects.create(table='"public"."gone"', cursor_kind="numbers", exists=False)
    history_requests.read_now(ANA, "console")
    assert history_requests.wanted_now()
    HistorySource.objects.filter(pk=planned.source.pk).update(looked_at=Now())
    assert not history_requests.wanted_now()
    HistorySource.objects.filter(exists=False).update(requested_at=Now())  # as earlier versions did
    assert not history_requests.wanted_now()


def test_after_a_cancel_reading_rests_until_somebody_asks(planned: HistoryBatch) -> None:
    history_requests.cancel(ANA, "console")
    held = HistorySource.objects.get()
    assert is_held(held)
    assert "when somebody presses Read now" in held.blocked_reason
    history_requests.read_now(ANA, "console")
    assert not is_held(HistorySource.objects.get())
    assert history_requests.wanted_now()
    assert [entry.verb for entry in AuditEntry.objects.order_by("id")] == ["cancel", "run"]


def test_nothing_open_is_nothing_to_cancel(console_database: str) -> None:
    assert not any(history_requests.cancel(ANA, "console"))
    assert not AuditEntry.objects.exists()


def test_files_are_kept_for_so_many_days(planned: HistoryBatch, tmp_path: Path) -> None:
    days = [TODAY - timedelta(days=days) for days in (31, 30, 0)]
    ended(planned, *(filed(planned, tmp_path, "a", day) for day in days))
    assert retain(tmp_path, 0, TODAY) == 0
    assert retain(tmp_path, 30, TODAY) == 1
    assert list(DataFile.objects.order_by("day").values_list("day", flat=True)) == days[1:]
    assert sorted(path.parent.name for path in tmp_path.rglob("*.parquet")) == [f"day={day}" for day in days[1:]]


def test_rejected_rows_are_kept_as_long_since_they_were_read(planned: HistoryBatch, tmp_path: Path) -> None:
    """They contain headers of users too; a young history file of the same batch stays."""
    today = database_clock.now().date()
    ended(planned, filed(planned, tmp_path, "turned-away", today, "rejected"), filed(planned, tmp_path, "kept", today))
    DataFile.objects.filter(dataset="rejected").update(day=None)
    assert retain(tmp_path, 30, today + timedelta(days=30)) == 0
    DataFile.objects.filter(dataset="history").update(day=today + timedelta(days=31))
    assert retain(tmp_path, 30, today + timedelta(days=31)) == 1
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["kept.parquet"]
    assert [file.dataset for file in DataFile.objects.all()] == ["history"]


def test_a_file_goes_after_its_row_has(database: Any, planned: HistoryBatch, tmp_path: Path) -> None:
    """A kill in between leaves a file without a name, never a name without a file."""
    ended(planned, filed(planned, tmp_path, "a", TODAY - timedelta(days=31)))
    database.run("""
        create function refused() returns trigger language plpgsql as 'begin raise exception ''disk full''; end';
        create trigger refused before delete on pgqueue_console.pgqueue_datafile
            for each row execute function refused()
    """)
    with pytest.raises(django.db.Error, match="disk full"):
        retain(tmp_path, 30, TODAY)
    assert list(tmp_path.rglob("*.parquet")) == [tmp_path / DataFile.objects.get().path]


def test_only_behind_the_ledger(planned: HistoryBatch, tmp_path: Path) -> None:
    file = filed(planned, tmp_path, "a", TODAY - timedelta(days=99))
    file.save()
    FileBatch.objects.create(file=file, batch=planned, rows=1)
    assert retain(tmp_path, 30, TODAY) == 0
    assert list(tmp_path.rglob("*.parquet"))


def test_the_sweep_takes_what_no_row_names(planned: HistoryBatch, tmp_path: Path) -> None:
    """A whole attempt's folder, and files left by a killed retention."""
    ended(planned, filed(planned, tmp_path, "kept", TODAY))
    filed(planned, tmp_path, "forgotten", TODAY)
    for dataset in ("v1", "rejected-v1"):
        (tmp_path / dataset / "batch-2").mkdir(parents=True)
    newest = max(path.stat().st_mtime for path in tmp_path.rglob("*"))
    assert sweep(tmp_path, now=newest + OLD - 1) == 0
    assert sweep(tmp_path, now=newest + OLD + 1) == 3
    assert [path.name for path in tmp_path.rglob("*.parquet")] == ["kept.parquet"]
    assert os.listdir(tmp_path / "rejected-v1") == []


def test_a_source_that_stands_still_is_a_stall(planned: HistoryBatch) -> None:
    now = database_clock.now()
    assert stalls(now) == []
    (stall,) = stalls(now + LIMIT + timedelta(seconds=5))
    assert (stall.table, stall.why) == ("messages.message_archive", "")
    ledger.failed(planned, ledger.begin(planned, "test"), "no space left")
    assert [each.why for each in stalls(now + 2 * LIMIT)] == ["no space left"]
    HistorySource.objects.update(watermark=now + LIMIT)
    assert stalls(now + 2 * LIMIT) == []


def test_a_table_that_is_gone_holds_nothing_back(database: Any) -> None:
    HistorySource.objects.create(
        table='"public"."audit_of_old"', cursor_kind="numbers", blocked_reason="Somebody is writing."
    )
    (archive,) = sources(database)
    assert planning.plan_batch(database, archive) is None
    archive.refresh_from_db()
    assert HistoryFreshness().watermark == archive.watermark is not None
    assert [each.table for each in stalls(database_clock.now() + 2 * LIMIT)] == [archive.table]
    assert stalls(database_clock.now() + LIMIT / 2) == []


def test_a_table_that_is_gone_holds_no_other_back(database: Any) -> None:
    """Otherwise no later hour would be judged or totalled."""
    now = database_clock.now()
    for table, days in (("gone", 900), ("read", 0)):
        about = {"cursor_kind": "numbers", "exists": table != "gone", "watermark": now - timedelta(days=days)}
        HistorySource.objects.create(table=table, **about)
    assert ledger.watermark() == HistoryFreshness().watermark == now


def test_where_no_table_is_left_history_ends_with_the_last_to_go(database: Any) -> None:
    """One that went years ago does not undo what was read since."""
    now = database_clock.now()
    for table, watermark in (("old", now - timedelta(days=900)), ("newer", now), ("never", None)):
        HistorySource.objects.create(table=table, cursor_kind="numbers", watermark=watermark, exists=False)
    assert HistoryFreshness().watermark == now
