"""Depth per minute outlives the database in files: whole days, each once."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from pgqueue_admin.history.storage import depth_files, layout, orphan_cleanup
from pgqueue_admin.history.storage.retention import retain
from pgqueue_admin.models import DataFile, DepthBucket, Queue

pytestmark = pytest.mark.usefixtures("console_database")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def folded(queue: int, at: datetime, *figures: int, **known: Any) -> None:
    low, median, high = figures or (1, 2, 3)
    DepthBucket.objects.create(grain="minute", at=at, queue=queue, low=low, median=median, high=high, **known)


def test_a_day_that_is_over_becomes_a_file(tmp_path: Path) -> None:
    sales = Queue.objects.create(schema="public", table="Sales", kind="input")
    known = {
        "how": "capped",
        "in_per_second": 2.5,
        "out_per_second": 0.0,
        "oldest_seconds": 42.5,
        "oldest_at_least": False,
    }
    folded(sales.pk, NOON, 4, 5, 6, rated_minutes=1, **known)
    folded(0, NOON, unread=2)
    assert depth_files.keep(tmp_path) is None  # nothing proves that the day is over
    folded(sales.pk, NOON + DAY)
    assert depth_files.keep(tmp_path) == date(2026, 11, 20)
    assert depth_files.keep(tmp_path) is None
    file = DataFile.objects.get()
    assert (file.dataset, file.day, file.rows, file.source) == ("depth", NOON.date(), 2, None)
    assert file.path.startswith("depth-v4/")
    assert pyarrow.parquet.read_table(tmp_path / file.path).to_pylist() == [
        {"at": NOON, "queue": "", "low": 1, "median": 2, "high": 3, **dict.fromkeys(known), "unread": 2},
        {
            "at": NOON,
            "queue": '"public"."Sales"',
            "low": 4,
            "median": 5,
            "high": 6,
            **known,
            "unread": None,
            "how": "capped",
        },
    ]


def test_days_without_minutes_are_passed_over(tmp_path: Path) -> None:
    for days in (0, 3, 4):
        folded(0, NOON + days * DAY)
    kept = [depth_files.keep(tmp_path) for _ in range(3)]
    assert kept == [date(2026, 11, 20), date(2026, 11, 23), None]


def test_day_filed_by_two_drivers_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both saw that the day was due; one file is kept, the other removed."""
    for days in (0, 1):
        folded(0, NOON + days * DAY)

    def settle_last(folder: Path, paths: list[Path]) -> None:
        monkeypatch.setattr(depth_files, "settle", layout.settle)
        assert depth_files.keep(tmp_path) == NOON.date()
        layout.settle(folder, paths)

    monkeypatch.setattr(depth_files, "settle", settle_last)
    assert depth_files.keep(tmp_path) == NOON.date()
    (file,) = DataFile.objects.all()
    assert [path.name for path in tmp_path.rglob("*.parquet")] == [Path(file.path).name]


def test_no_retention_takes_it_and_the_sweep_only_what_a_kill_left(tmp_path: Path) -> None:
    for days in (0, 1):
        folded(0, NOON + days * DAY)
    depth_files.keep(tmp_path)
    assert retain(tmp_path, 1, NOON.date() + 99 * DAY) == 0
    (kept,) = tmp_path.rglob("*.parquet")
    (kept.parent / f"{orphan_cleanup.noted()}.parquet").touch()
    assert orphan_cleanup.sweep(tmp_path, kept.stat().st_mtime + orphan_cleanup.OLD + 60) == 1
    assert list(tmp_path.rglob("*.parquet")) == [kept]
