"""The recorded archive and audit queue end to end: files, rollups and ledger agree with plain SQL."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.models import Max, Min, Sum

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.console.archive import search
from pgqueue_admin.console.trends import drilldown
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.freshness import rejections
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.sources.size_limits import BODY_MOST, HEADERS_MOST
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.history.spark.transforms import parse_headers
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import (
    DataFile,
    FailureRollup,
    FileBatch,
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
    Queue,
    RecomputeRequest,
    RetryOutcome,
    Rollup,
    history_requests,
)
from pgqueue_admin.services.content_access import ALL
from tests.history.doc_comparison import figures_are_those_of_duckdb, figures_are_those_of_plain_sql
from tests.history.independent_recount import Recount
from tests.history.independent_recount.extra_failures import added
from tests.history.parquet_metadata import are_as_documented, is_sorted
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.spark
WEEK = datetime(2026, 11, 13, tzinfo=UTC), datetime(2026, 11, 22, tzinfo=UTC)


def test_the_recorded_shop(
    archived_console: str,
    driver: Callable[..., BatchLoop],
    history: Path,
    connect: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Queue.objects.create(schema="public", table="audit", kind="audit")
    monkeypatch.setattr(queries, "OUTCOMES", 10_000)  # all of them
    database = connect(archived_console)
    added(database)
    assert driver(most=10_000).run_once() == 3

    files_agree(history, database)
    failures_agree(database)
    queues_lead_to_their_messages(database)
    figures_are_those_of_plain_sql(database)
    paths = [history / file.path for file in DataFile.objects.filter(dataset="history")]
    figures_are_those_of_duckdb([*map(str, paths)])
    are_as_documented(paths)
    recount = Recount(database, WEEK)
    recount.agrees()

    assert driver().run_once() == 0
    folded_is_the_same()
    assert tasks.cut_trends()
    recount.agrees()  # computed from the stored totals
    with monkeypatch.context() as file_by_file:
        file_by_file.setattr(planning, "MOST", 1)
        recomputed_is_the_same(driver(), date(2026, 11, 14))
    assert not HistorySource.objects.filter(watermark=None).exists()
    assert {(batch.state, batch.code_version) for batch in HistoryBatch.objects.all()} == {("done", "test")}
    compacted_is_the_same(driver, history, database)


def files_agree(history: Path, database: Any) -> None:
    """Read by Arrow like any reader would: files in the manifest hold each message once."""
    paths = [str(history / file.path) for file in DataFile.objects.filter(dataset="history")]
    found = pyarrow.dataset.dataset(paths).to_table(["source", "seq", "message_id", "headers"])
    assert found.num_rows == len({(row["source"], row["seq"]) for row in found.select(["source", "seq"]).to_pylist()})
    archived = database.value("select count(*) from messages.message_archive where kind <> 'control'")
    audited = database.value("select count(*) from audit")
    assert found.num_rows == archived + audited
    headers = database.value("select headers from audit order by seq limit 1")
    assert headers in found.column("headers").to_pylist()


def failures_agree(database: Any) -> None:
    """Every failure has its own error's fingerprint, and every dead message one outcome."""
    died = "from messages.message_archive where kind <> 'control'"
    errors = FailureRollup.objects.values("exception").distinct().count()
    assert errors == database.value(f"select count(distinct exception_type) {died}")
    counted = FailureRollup.objects.aggregate(messages=Sum("messages"))["messages"]
    assert counted == database.value(f"select count(exception_type) {died}")
    outcomes = queries.retry_outcomes(queries.TrendQuery(*WEEK, "day"))
    assert outcomes[0].of_all == database.value(f"select count(distinct message_id) {died} and message_id <> ''")


def queues_lead_to_their_messages(database: Any) -> None:
    """The archive's search for a queue's window finds what Trends counts."""
    asked = queries.TrendQuery(*WEEK, "day")
    queues = queries.kinds(asked)["queue"]
    assert len(queues) > 1
    for queue in queues:
        narrowed = drilldown.narrowed(replace(asked, queue=queue.name))
        q = " ".join([*narrowed, "since:2026-11-13", "until:2026-11-22", "kind:transport"])
        assert store.count(database, search.read(q, ALL).filter, 10_000).number == queue.messages


def recomputed_is_the_same(driver: BatchLoop, day: date) -> None:
    """From the files, without the tables: all figures of two days again, one day per turn, and nothing else."""
    before, last = figures(), day + timedelta(days=1)
    assert history_requests.recompute(User(username="ana"), "console", day, last) == ([day, last], 0)
    assert driver.run_once() == 1
    assert [each.day for each in RecomputeRequest.objects.filter(is_wanted=True)] == [last]
    assert driver.run_once() == 1
    assert not history_requests.wanted_now()
    assert not RecomputeRequest.objects.exclude(error="").exists()
    assert figures() == before
    (figure,) = Rollup.objects.filter(grain="day", at=midnight(day)).values_list("batch").distinct()
    assert figure == (None,)


def compacted_is_the_same(driver: Callable[..., BatchLoop], history: Path, database: Any) -> None:
    """A day shared by two batches becomes one file: each row once, sorted, with its batch."""
    before, rows = figures(), FileBatch.objects.aggregate(rows=Sum("rows"))
    driver(many=2).run_once()
    done = HistoryCompaction.objects.get()
    assert (done.state, done.error) == ("done", "")
    (file,) = DataFile.objects.filter(source=done.source, day=done.day)
    assert file.parts.count() == done.files > 1
    assert is_sorted(history / file.path)
    files_agree(history, database)
    assert FileBatch.objects.aggregate(rows=Sum("rows")) == rows
    recomputed_is_the_same(driver(), done.day)
    assert figures() == before


def midnight(day: date) -> datetime:
    return datetime.combine(day, datetime.min.time(), UTC)


def figures() -> list[Any]:
    """Sums of all figures, whatever batches they come from."""
    kinds = ("queue", "endpoint", "type", "exception")
    finished = Rollup.objects.values_list("grain", "at", "result", *kinds).annotate(Sum("messages"), Sum("skewed"))
    failures = FailureRollup.objects.values_list("at", "fingerprint", "message", *kinds).annotate(Sum("messages"))
    whole = Min("first_at"), Max("last_failed_at"), Max("last_succeeded_at"), Sum("failed"), Sum("succeeded")
    outcomes = RetryOutcome.objects.values_list("message_id").annotate(*whole)
    timed = [
        queries.timings(queries.TrendQuery(*WEEK, grain), each)
        for grain in ("hour", "day")
        for each in queries.MEASURES
    ]
    return [*map(sorted, map(list, (finished, failures, outcomes))), timed]


def folded_is_the_same() -> None:
    """Hours and days of all batches, once the baselines include them: one row per kind."""
    before, rows = figures(), Rollup.objects.count()
    tasks.compare_hours()
    tasks.fold_figures()
    assert figures() == before
    assert Rollup.objects.count() < rows
    kinds = Rollup.objects.exclude(grain="minute").values(
        "grain", "at", "queue", "endpoint", "type", "result", "exception"
    )
    assert kinds.count() == kinds.distinct().count()


def test_batch_cancelled_while_spark_works_ends_and_is_read_later(
    console_database: str, driver: Callable[..., BatchLoop], history: Path, connect: Callable[[str], Any]
) -> None:
    """Spark waits for a lock on the table it reads, so it is certainly at work when the batch is cancelled."""
    database, locking = connect(console_database), connect(console_database)
    store.archive_failed(database, DeadMessage(queue="q", headers="{}"))
    batch = planning.plan_batch(database, sources(database)[0])
    assert batch is not None
    with locking.transaction():
        locking.run("lock table messages.message_archive in access exclusive mode")
        turning = threading.Thread(target=turn, args=(driver(),))
        turning.start()
        until(lambda: database.value(WAITING, {"table": ARCHIVE}), what="Spark waits for the table")
        assert history_requests.cancel(User(username="ana"), "console") == (1, 0, 0)
        turning.join(PATIENCE)
        assert not turning.is_alive()
    batch.refresh_from_db()
    assert (batch.state, batch.error) == ("abandoned", "Cancelled by ana.")
    assert not list(history.glob("*/batch-*"))
    assert driver().run_once() == 0
    history_requests.read_now(User(username="ana"), "console")
    assert driver().run_once() == 1


WAITING = "select exists (select from pg_locks where not granted and relation = %(table)s::regclass)"


def turn(driver: BatchLoop) -> None:
    driver.run_once()
    connections.close_all()


def test_rejected_rows_are_counted_and_stop_nothing(
    archived_console: str, driver: Callable[..., BatchLoop], history: Path, connect: Callable[[str], Any]
) -> None:
    """One row of each kind of fault, and one good message with names that no database accepts."""
    database = connect(archived_console)
    database.run("delete from audit where seq > (select min(seq) from audit)")
    database.run("alter table audit drop constraint if exists audit_seq_key")
    database.run("drop index if exists audit_seq_key")
    for seq, headers, size in (
        (1_000_001, "{", 0), (1_000_002, "{}", 0), (1_000_002, "{}", 0), (1_000_003, "{" + " " * HEADERS_MOST + "}", 0),
        (1_000_004, '{"NServiceBus.ProcessingEnded":"never"}', 0), (1_000_005, ODD, BODY_MOST + 1), (1_000_006, ODD, 0),
    ):  # fmt: skip
        about = {"seq": seq, "headers": headers, "size": size}
        database.run(
            "insert into audit (id, seq, headers, body)"
            " values (gen_random_uuid(), %(seq)s, %(headers)s, convert_to(repeat('x', %(size)s), 'utf8'))",
            about,
        )
    Queue.objects.create(schema="public", table="audit", kind="audit")
    HistorySource.objects.create(table="messages.message_archive", cursor_kind="snapshots", snapshot="")
    driver().run_once()
    batch = HistoryBatch.objects.get(source__table='"public"."audit"')
    assert (batch.state, batch.error, batch.kept, batch.rows) == ("done", "", 2, 8)
    assert batch.rejected == dict.fromkeys(EACH, 1)
    assert sum(row.messages for row in Rollup.objects.filter(batch=batch, grain="day")) == 2
    assert {each.reason: each.rows for each in rejections()} == batch.rejected
    named = [str(history / file.path) for file in DataFile.objects.filter(parts__batch=batch, dataset="rejected")]
    assert sorted(pyarrow.dataset.dataset(named).to_table().column("reason").to_pylist()) == sorted(EACH)


def test_a_batch_of_large_rows_has_room_in_java(
    console_database: str, driver: Callable[..., BatchLoop], history: Path, connect: Callable[[str], Any]
) -> None:
    """Each row nearly at the size limit: they are read, compacted into one file, and recounted from it."""
    database = connect(console_database)
    for rows in (400, 20):
        database.run(LARGE, {"rows": rows, "size": HEADERS_MOST - 100_000})
        assert driver(many=100).run_once() == 1
    kept = DataFile.objects.values_list("rows", flat=True)
    assert sorted(kept) == [20, 400]
    driver(many=2).run_once()
    assert [(each.state, each.error) for each in HistoryCompaction.objects.all()] == [("done", "")]
    assert list(kept.all()) == [420]
    day = date(2026, 11, 14)
    assert history_requests.recompute(User(username="ana"), "console", day, day) == ([day], 0)
    assert driver().run_once() == 1
    assert not RecomputeRequest.objects.exclude(error="", is_wanted=False).exists()


LARGE = """
insert into messages.message_archive (created_at, message, result, handled_by, kind, queue, headers, died_at)
select now(), '{}', 'success', 'Sales', 'transport', 'q', format('{"Note":"%%s%%s"}', number, repeat('x', %(size)s)),
    timestamp '2026-11-14 12:00:00'
from generate_series(1, %(rows)s) number
"""
EACH = [
    parse_headers.NO_OBJECT, parse_headers.NO_END, parse_headers.TWIN, parse_headers.HEADERS_TOO_LARGE,
    parse_headers.UNREADABLE_END,
    parse_headers.body_too_large(BODY_MOST),
]  # fmt: skip
ODD = (
    '{"NServiceBus.ProcessingEnded":"2026-11-14 12:00:00:000000 Z","NServiceBus.ProcessingEndpoint":"a\\u0000b\\ud800",'
    '"NServiceBus.MessageId":"\\u0000","NServiceBus.EnclosedMessageTypes":"' + "T" * 5000 + '"}'
)
