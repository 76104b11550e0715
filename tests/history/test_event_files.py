"""Events of archived messages outlive the archive in files: each once, and late commits are not missed."""

import os
import signal
import tracemalloc
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import django.db
import pyarrow.parquet
import pytest
from django.contrib.auth.models import User

from pgqueue_admin.archive import store
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.history.storage import event_files, layout
from pgqueue_admin.history.storage.orphan_cleanup import OLD, sweep
from pgqueue_admin.history.storage.retention import retain
from pgqueue_admin.models import DataFile, HistorySource
from pgqueue_admin.services.operations import single
from tests.history.events import buried, event, filed, kept, midnight, midnight_passes, moved_back
from tests.history.pause_points import Point, held_at, is_waited_for
from tests.history.test_killed import start
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("one_day")
NAMED = Point(
    "named", "before insert on {on} for each row when (new.dataset = 'events')", "pgqueue_console.pgqueue_datafile"
)


@pytest.fixture
def archive(database: Connection) -> HistorySource:
    (source,) = sources(database)
    return source


def day(days: int) -> date:
    return midnight(days).date()


def test_a_day_that_is_over_becomes_a_file_with_who_and_why(
    database: Connection, archive: HistorySource, tmp_path: Path
) -> None:
    dead = buried(database, message_id="m-1")
    ana = User.objects.create_superuser("ana")
    operation = single.act("discard", dead, ana, "console", "a test order").operation
    assert kept(database, tmp_path) == 0  # its day is not over
    moved_back(database, 1)
    midnight_passes()
    assert kept(database, tmp_path) == 1
    (file,) = DataFile.objects.all()
    (row,) = pyarrow.parquet.read_table(tmp_path / file.path).to_pylist()
    (known,) = store.events(database, dead)
    assert (file.dataset, file.day, file.rows, file.source) == ("events", known.at.date(), 1, archive)
    assert file.path.startswith("events-v1/")
    assert row == {
        "source": ARCHIVE, "seq": 1, "archive_id": dead, "message_id": "m-1",
        "event": known.id, "at": known.at, "who": "ana", "verb": "discarded", "operation": operation, "target": None,
        "reason": "a test order",
    }  # fmt: skip


def test_day_by_day_and_each_event_once(database: Connection, archive: HistorySource, tmp_path: Path) -> None:
    first, second = buried(database), buried(database)
    for archive_id, days, verb in [(second, -2, "restored"), (first, -2, "retried"), (first, -5, "discarded")]:
        event(database, archive_id, days, verb)
    event(database, first, 0)
    assert [event_files.keep(database, tmp_path) for _ in range(3)] == [1, 2, 0]
    assert filed(tmp_path) == {day(-5): [(1, "discarded")], day(-2): [(1, "retried"), (2, "restored")]}
    midnight_passes()
    assert kept(database, tmp_path) == 0


def test_a_day_on_which_very_much_was_done_is_read_a_part_at_a_time(
    database: Connection, archive: HistorySource, tmp_path: Path
) -> None:
    """Everything was discarded at once: a hundred thousand events need no more memory than twenty."""
    dead = [buried(database) for _ in range(3)]
    many = "insert into messages.archive_event (archive_id, who, verb, at) select %s, 'ana', 'discarded', %s"
    for archive_id in reversed(dead):
        database.run(f"{many} from generate_series(1, 25000)", [archive_id, midnight(-2)])
    database.run(f"{many} from generate_series(1, 5000)", [dead[0], midnight(-3)])
    midnight_passes()
    assert event_files.keep(database, tmp_path) == 5000
    tracemalloc.start()
    try:
        assert event_files.keep(database, tmp_path) == 75_000
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    file = pyarrow.parquet.ParquetFile(tmp_path / DataFile.objects.get(day=day(-2)).path)
    groups = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    assert groups == [20_000, 20_000, 20_000, 15_000]
    seqs = file.read(["seq"])["seq"].to_pylist()
    assert seqs == sorted(seqs)
    assert Counter(seqs) == dict.fromkeys((1, 2, 3), 25_000)


def test_late_event_is_filed_once(
    database: Connection, archive: HistorySource, console_database: str, connect: Callable[[str], Any], tmp_path: Path
) -> None:
    """At its commit, its number, time and transaction are lower than those already in files."""
    one, two = buried(database), buried(database)
    slow = connect(console_database)
    with slow.transaction():
        event(slow, one, -3, "late")
        event(slow, one, -2, "late")
        for days in (-3, -2):
            event(database, two, days)
        assert kept(database, tmp_path) == 2
        midnight_passes()
        assert kept(database, tmp_path) == 0
    midnight_passes()
    assert kept(database, tmp_path) == 2
    late, others = [(1, "late")], [(2, "discarded")]
    assert filed(tmp_path) == {day(-3): others + late, day(-2): others + late}
    midnight_passes()
    assert kept(database, tmp_path) == 0


def test_event_of_a_transaction_older_than_the_day_file_is_filed(
    database: Connection, archive: HistorySource, console_database: str, connect: Callable[[str], Any], tmp_path: Path
) -> None:
    one = buried(database)
    slow = connect(console_database)
    with slow.transaction():
        slow.value("select pg_current_xact_id()")
        event(database, one)
        assert kept(database, tmp_path) == 1
        event(slow, one, verb="late")
    midnight_passes()
    assert kept(database, tmp_path) == 1
    assert filed(tmp_path) == {day(-2): [(1, "discarded"), (1, "late")]}


def test_event_of_a_prepared_transaction_is_filed_without_waiting(
    database: Connection, archive: HistorySource, console_database: str, connect: Callable[[str], Any], tmp_path: Path
) -> None:
    one, two = buried(database), buried(database)
    other, name = connect(console_database), f"events of {archive.pk}"
    other.run("begin")
    event(other, one)
    other.run(f"prepare transaction '{name}'")
    try:
        event(database, two)
        assert kept(database, tmp_path) == 1
    finally:
        other.run(f"commit prepared '{name}'")
    midnight_passes()
    assert kept(database, tmp_path) == 1
    assert filed(tmp_path) == {day(-2): [(2, "discarded"), (1, "discarded")]}


def test_killed_between_file_and_manifest(database: Connection, console_database: str, tmp_path: Path) -> None:
    """kill -9: its file is unnamed and swept; the next driver writes each event once."""
    event(database, 7)
    with held_at(NAMED, database):
        driver = start(console_database, tmp_path)
        until(lambda: is_waited_for(database) or driver.poll() is not None, 600, "its file is written")
        assert driver.poll() is None, "it ended before it named its file"
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
    (orphan,) = tmp_path.glob("events-v1/**/*.parquet")
    assert not DataFile.objects.exists()
    assert kept(database, tmp_path) == 1
    assert len(list(tmp_path.glob("events-v1/**/*.parquet"))) == 2
    assert sweep(tmp_path, orphan.stat().st_mtime + OLD + 60) == 1
    assert not orphan.exists()
    assert filed(tmp_path) == {day(-2): [(None, "discarded")]}


def test_file_and_place_are_one_transaction(database: Connection, archive: HistorySource, tmp_path: Path) -> None:
    """If the manifest is not written, the ledger does not advance."""
    event(database, buried(database))
    database.run("alter table pgqueue_console.pgqueue_datafile add constraint full_disk check (rows = 0)")
    with pytest.raises(django.db.IntegrityError):
        event_files.keep(database, tmp_path)
    database.run("alter table pgqueue_console.pgqueue_datafile drop constraint full_disk")
    assert kept(database, tmp_path) == 1
    assert filed(tmp_path) == {day(-2): [(1, "discarded")]}


def test_events_filed_by_two_drivers_are_one_file(
    database: Connection, archive: HistorySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the same events: one driver's are kept, the other's file is removed."""
    event(database, buried(database))
    settle = layout.settle

    def slowly(root: Path, paths: Any) -> None:
        monkeypatch.setattr(event_files, "settle", settle)
        assert event_files.keep(database, tmp_path) == 1
        settle(root, paths)

    monkeypatch.setattr(event_files, "settle", slowly)
    assert event_files.keep(database, tmp_path) == 0
    (file,) = DataFile.objects.all()
    assert list(tmp_path.rglob("*.parquet")) == [tmp_path / file.path]


def test_day_filed_by_another_driver_is_superseded_by_its_midnight(
    database: Connection, archive: HistorySource, tmp_path: Path
) -> None:
    """No transaction since: the snapshot is the same, and only the midnight differs."""
    event(database, buried(database))
    assert kept(database, tmp_path) == 1
    archive.refresh_from_db()
    HistorySource.objects.update(events_before=midnight(1))
    now = database.all(postgresql().history.instant())[0]
    found = SimpleNamespace(snapshot=now.snapshot, written=0, at=now.at)
    with pytest.raises(ledger.Superseded):
        ledger.filed(archive, found, midnight(1), [])


def test_a_disk_that_is_full_leaves_nothing(
    database: Connection, archive: HistorySource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*about: Any) -> None:
        raise OSError("No space left on device")

    event(database, buried(database))
    with monkeypatch.context() as disk:
        disk.setattr(event_files, "settle", full)
        with pytest.raises(OSError, match="No space"):
            event_files.keep(database, tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))
    assert kept(database, tmp_path) == 1


def test_event_files_are_kept_as_long_as_messages(database: Connection, archive: HistorySource, tmp_path: Path) -> None:
    dead = buried(database)
    for days in (-31, -30):
        event(database, dead, days)
    assert kept(database, tmp_path) == 2
    assert retain(tmp_path, 0, day(0)) == 0
    assert retain(tmp_path, 30, day(0)) == 1
    assert list(filed(tmp_path)) == [day(-30)]
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


def test_after_a_server_was_put_back_nothing_goes_into_files(
    database: Connection, archive: HistorySource, tmp_path: Path
) -> None:
    event(database, buried(database))
    HistorySource.objects.update(events_snapshot=f"{10**9}:{10**9}:")
    assert kept(database, tmp_path) == 0
    assert "put back" in HistorySource.objects.get().blocked_reason
    HistorySource.objects.update(cluster="", events_snapshot="")
    assert kept(database, tmp_path) == 1


def test_an_archive_that_has_no_events_is_left_alone(database: Connection, tmp_path: Path) -> None:
    database.run("drop schema messages cascade")
    assert sources(database) == []
    assert event_files.keep(database, tmp_path) == 0
    HistorySource.objects.create(table=ARCHIVE, cursor_kind="numbers")
    assert event_files.keep(database, tmp_path) == 0
    assert not DataFile.objects.exists()


def test_a_driver_does_it_with_each_turn_and_needs_no_spark(database: Connection, history: Path) -> None:
    """The number of a message that the archive forgot before is unknown."""
    event(database, 7)
    assert BatchLoop(spark=object()).run_once() == 0
    (file,) = DataFile.objects.all()
    (row,) = pyarrow.parquet.read_table(history / file.path).to_pylist()
    assert (row["archive_id"], row["seq"], row["message_id"], row["verb"]) == (7, None, None, "discarded")
