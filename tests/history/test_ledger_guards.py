"""What the ledger refuses, so that nothing is read twice or missed: each guard by the error it prevents."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.history import freshness, ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.plan.planning import MOST, by_snapshots
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.history.sources.timelines import Timeline
from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock
from tests.history.promotion import rests
from tests.history.tables import audit, died, put, read
from tests.waiting import PATIENCE, until

Connect = Callable[[str], Any]
WAITS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
MOVED = {"snapshot": "9:9:", "snapshot_target": "9:9:", "seq_done": 9}


def test_snapshot_restarts_after_a_range_that_filled_its_parts(
    database: Any, console_database: str, connect: Connect
) -> None:
    """The last part filled a batch and the next query finds none: late commits have lower numbers."""
    slow = connect(console_database)
    (archive,) = sources(database)
    with slow.transaction():
        died(slow)  # 1
        died(database, 4)
        assert read(database, archive, most=2) == [2, 3, 4, 5]
        archive.refresh_from_db()
        assert (archive.snapshot_target, archive.seq_done) == ("", 0)
    assert read(database, archive, most=2) == [1]


def test_ended_batch_cannot_begin(database: Any) -> None:
    """A driver that planned it and then paused."""
    (archive,) = sources(database)
    died(database)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    ledger.done(batch, ledger.begin(batch, "test"), 1, {}, [], [])
    with pytest.raises(ledger.Superseded):
        ledger.begin(batch, "test")
    assert HistoryBatch.objects.get().state == "done"


@pytest.mark.parametrize("name", MOVED)
def test_a_plan_counts_only_where_all_of_its_place_is_as_it_was(name: str, database: Any) -> None:
    (archive,) = sources(database)
    died(database)
    found = by_snapshots(database, archive, MOST)
    HistorySource.objects.update(**{name: MOVED[name]})
    assert ledger.planned(archive, found, is_last=True) is None
    ledger.nothing_came(archive, found)
    moved = HistorySource.objects.get()
    assert (getattr(moved, name), moved.watermark) == (MOVED[name], None)
    assert not HistoryBatch.objects.exists()


def test_a_plan_waits_for_a_batch_that_is_just_ending(database: Any, console_database: str, connect: Connect) -> None:
    """The other driver advances the source: rows found before are read by then."""
    ending = connect(console_database)
    (archive,) = sources(database)
    died(database)
    found, planned = by_snapshots(database, archive, MOST), list[HistoryBatch | None]()

    def plan() -> None:
        planned.append(ledger.planned(archive, found, is_last=True))
        connections.close_all()

    planning_it = threading.Thread(target=plan)
    with ending.transaction():
        ending.run("update pgqueue_console.pgqueue_historysource set snapshot = '9:9:'")
        planning_it.start()
        until(lambda: database.value(WAITS), what="the plan waits")
    planning_it.join(PATIENCE)
    assert planned == [None]
    assert not HistoryBatch.objects.exists()


def test_position_of_another_archive_does_not_count(database: Any) -> None:
    """Otherwise the archive would prune rows decided in the other one."""
    now = database_clock.now()
    HistorySource.objects.create(
        table=ARCHIVE,
        cursor_kind="snapshots",
        cluster="1/00000001",
        snapshot="9:9:",
        events_snapshot="8:8:",
        events_before=now,
    )
    assert freshness.of_archive("1/00000001", 7) == ("9:9:", "8:8:", now), "which table it is was not noted yet"
    assert freshness.of_archive("1/00000002", 7) == ("", ledger.BEFORE_ALL, None)
    HistorySource.objects.update(oid=7)
    assert freshness.of_archive("1/00000001", 7) == ("9:9:", "8:8:", now)
    assert freshness.of_archive("1/00000001", 8) == ("", ledger.BEFORE_ALL, None)


def test_a_number_that_was_seen_on_another_timeline_is_looked_for_anew(database: Any) -> None:
    """Up to it all was decided there; on this timeline, writers may still be below it."""
    source = audit(database)
    put(database)
    assert read(database, source) == [1]
    source.refresh_from_db()
    ledger.head_seen(source, 5, database_clock.now(), ["3/7"])
    assert source.oid is not None
    ledger.is_of(source, source.oid, source.sequence_file, Timeline("1/00000009", 1))
    assert (source.candidate_max_seq, source.open_transactions) == (None, [])
    source.refresh_from_db()
    assert (source.candidate_max_seq, source.open_transactions, source.cluster) == (None, [], "1/00000009")


def test_how_far_the_log_was_written_never_goes_back(database: Any) -> None:
    """Of two drivers, the one that looked first may report last."""
    (archive,) = sources(database)
    found = by_snapshots(database, archive, MOST)
    ledger.nothing_came(archive, found)
    archive.refresh_from_db()
    ledger.nothing_came(archive, replace(found, written=found.written - 1))
    assert HistorySource.objects.get().wal_flush_lsn == found.written


@pytest.mark.parametrize("name", ["snapshot", "snapshot_target", "events_snapshot"])
def test_ids_that_come_again_behind_any_snapshot_of_the_ledger_are_noticed(name: str, database: Any) -> None:
    (archive,) = sources(database)
    assert planning.plan_batch(database, archive) is None
    died(database)
    ahead = database.value("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint") + 20
    HistorySource.objects.update(**{name: f"{ahead}:{ahead}:"})
    rests(database, archive, "put back")
