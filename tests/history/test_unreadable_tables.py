"""An unreadable table blocks no other, and nothing incomplete is called complete."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db.models.functions import Now

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.history import batch_loop, ledger
from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.history.storage import compactions
from pgqueue_admin.models import HistoryBatch, HistorySource, Queue, RecomputeRequest, database_clock
from tests.history.tables import audit_queue, died, put, read

Connect = Callable[[str], Any]


def ended(batch: HistoryBatch | None) -> HistoryBatch:
    assert batch is not None
    ledger.done(batch, ledger.begin(batch, "test"), 0, {}, [], [])
    return batch


def test_complete_is_what_the_snapshot_saw_that_was_read_up_to(database: Any) -> None:
    """Not what arrived while it was read in parts."""
    (archive,) = sources(database)
    died(database, 6)
    ended(planning.plan_batch(database, archive, 4))
    archive.refresh_from_db()
    died(database, 1)
    committed = database.value("select clock_timestamp()")
    assert ended(planning.plan_batch(database, archive, 4)).rows == 2
    archive.refresh_from_db()
    assert archive.watermark < committed
    last = ended(planning.plan_batch(database, archive, 4))
    archive.refresh_from_db()
    assert (last.rows, archive.watermark > committed, archive.candidate_at) == (1, True, None)


@pytest.fixture
def looking(console_database: str, connect: Connect, database: Any) -> Iterator[Any]:
    """A session that may read only what it is granted."""
    for statement in (
        "create role only_looks_at_some", "grant usage on schema messages to only_looks_at_some",
        "grant select on all tables in schema messages to only_looks_at_some",
        "grant execute on function pg_control_system() to only_looks_at_some",
    ):  # fmt: skip
        database.run(statement)
    looking = connect(console_database)
    looking.run("set role only_looks_at_some")
    yield looking
    looking.run("reset role")
    database.run("drop owned by only_looks_at_some; drop role only_looks_at_some")


class Reading:
    def __init__(self, connection: Any):
        self._connection = connection

    @contextmanager
    def read_session(self) -> Iterator[Any]:
        yield self._connection


def turned(monkeypatch: pytest.MonkeyPatch, looking: Any) -> tuple[list[str], DatabaseError | None]:
    """The tables whose batches a turn read, and its error; without Spark."""
    from pgqueue_admin.history.spark.jobs import batch as job

    read: list[str] = []
    monkeypatch.setattr(batch_loop, "queue_database", lambda: Reading(looking))
    monkeypatch.setattr(job, "run", lambda _, batch, *__: read.append(ended(batch).source.table))
    monkeypatch.setattr(compactions, "due", lambda *_: read.append("compact"))
    try:
        batch_loop.BatchLoop("test", spark=SimpleNamespace(conf={"spark.master": "local[1]"})).run_once()
    except DatabaseError as error:
        return read, error
    return read, None


def test_a_cluster_that_was_not_ready_is_asked_again_by_whoever_comes_next(
    database: Any, history: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise machines that do not see the folder would read the next table, and its rows would be lost."""
    from pgqueue_admin.history.spark import cluster_check, session
    from pgqueue_admin.history.spark.jobs import batch as job

    audit_queue(database)
    put(database)
    died(database)
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "spark://plant:7077"}
    asked, stopped = list[Path](), list[bool]()

    def not_ready(_: Any, folder: Path) -> None:
        asked.append(folder)
        raise cluster_check.ClusterNotReady("PGQUEUE_HISTORY_DIR must be one folder")

    monkeypatch.setattr(session, "session", lambda *_, **__: SimpleNamespace(stop=lambda: stopped.append(True)))
    monkeypatch.setattr(cluster_check, "ready", not_ready)
    monkeypatch.setattr(job, "run", lambda *_: pytest.fail("a batch was begun"))
    RecomputeRequest.objects.create(day=date(2026, 11, 14), asked_at=database_clock.now(), is_wanted=True)
    one = batch_loop.BatchLoop("test")
    with pytest.raises(cluster_check.ClusterNotReady):
        one.run_once()
    assert (asked, stopped) == ([history], [True]), "it is waited for once a turn"
    notes = HistorySource.objects.values_list("blocked_reason", flat=True)
    assert set(notes) == {"PGQUEUE_HISTORY_DIR must be one folder"}
    assert RecomputeRequest.objects.get().is_wanted, "it is no fault of the day"
    with pytest.raises(cluster_check.ClusterNotReady):
        one.run_once()
    assert asked == [history, history]


def test_a_table_that_may_not_be_read_is_no_source(
    database: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a_audit", "b_audit"):
        audit_queue(database, name)
        put(database, name)
    database.run("grant select on b_audit to only_looks_at_some")
    assert turned(monkeypatch, looking) == (['"public"."b_audit"', "compact"], None)
    assert ledger.watermark() is not None


def test_table_without_a_grant_holds_up_no_other(database: Any, looking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a_audit", "b_audit"):
        audit_queue(database, name)
        put(database, name)
        database.run(f"grant select on {name} to only_looks_at_some")
    turned(monkeypatch, looking)
    database.run("revoke select on a_audit from only_looks_at_some")
    for name in ("a_audit", "b_audit"):
        put(database, name)
    read, error = turned(monkeypatch, looking)
    assert read == ['"public"."b_audit"', "compact"]
    assert error is not None
    told = HistorySource.objects.get(table='"public"."a_audit"').blocked_reason
    assert "a_audit" in told


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("revoke usage on schema closed from public", "closed"),
        ("alter table closed.audit drop column seq", "It has no column seq any more"),
    ],
)
def test_table_without_readable_seqs_holds_up_no_other(
    change: str, why: str, database: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("create schema closed")
    database.run("grant usage on schema closed to public")
    audit_queue(database, "audit", "closed")
    audit_queue(database)
    database.run("grant select on audit, closed.audit to only_looks_at_some")
    turned(monkeypatch, looking)
    database.run(change)
    put(database)
    read, error = turned(monkeypatch, looking)
    assert read == ['"public"."audit"', "compact"], error
    assert why in HistorySource.objects.get(table='"closed"."audit"').blocked_reason


def test_archive_in_a_forbidden_schema_holds_up_no_queue(
    database: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("revoke usage on schema messages from only_looks_at_some")
    audit_queue(database)
    put(database)
    database.run("grant select on audit to only_looks_at_some")
    read, error = turned(monkeypatch, looking)
    assert read == ['"public"."audit"', "compact"], error
    assert "schema messages" in HistorySource.objects.get(table=ARCHIVE).blocked_reason


def test_table_never_read_to_its_end_holds_up_no_figures(database: Any) -> None:
    """Hours are counted, judged and folded as far as the others are complete; the page still reports the gap."""
    (archive,) = sources(database)
    assert planning.plan_batch(database, archive) is None
    audit_queue(database)
    sources(database)
    archive.refresh_from_db()
    assert ledger.watermark() == archive.watermark is not None
    assert HistoryFreshness().watermark is None


def test_without_an_archive_audit_queues_are_read(database: Any) -> None:
    for name in ("message_dead", "message_archive"):
        database.run(f"drop {'view' if name.endswith('dead') else 'table'} messages.{name}")
    assert sources(database) == []
    audit_queue(database)
    assert [each.cursor_kind for each in sources(database)] == ["numbers"]


def test_batch_of_a_dropped_table_is_abandoned(database: Any) -> None:
    """It can never be read, and History would always offer to cancel it. If the table returns, it is planned again."""
    audit_queue(database)
    put(database)
    source = next(each for each in sources(database) if each.cursor_kind == "numbers")
    left = planning.plan_batch(database, source)
    Queue.objects.update(gone_since=Now())
    assert batch_loop.BatchLoop().run_once() == 0
    assert left is not None
    left.refresh_from_db()
    assert (left.state, left.error[:35]) == ("abandoned", "Its table was dropped or renamed, o")
    Queue.objects.update(gone_since=None)
    (source,) = (each for each in sources(database) if each.cursor_kind == "numbers")
    assert read(database, source) == [1]
