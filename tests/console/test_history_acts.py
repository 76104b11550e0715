"""History: rejected rows, stalled tables, and acts on the ledger for those with the right."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import uuid4

import pytest
from django.test import Client
from django.utils.html import escape
from pytest_django import Settings

from pgqueue_admin.alerts.kinds import history_stalled
from pgqueue_admin.history import ledger
from pgqueue_admin.models import (
    AuditEntry,
    DataFile,
    FileBatch,
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
    RecomputeRequest,
    database_clock,
)
from tests.history.rollup_factory import rolled_up

HOUR = timedelta(hours=1)


def words(page: str) -> str:
    """The visible text, without tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.fixture
def batch(console_database: str) -> HistoryBatch:
    source = HistorySource.objects.create(
        table='"public"."audit"', cursor_kind="numbers", watermark=database_clock.now()
    )
    about = {
        "seq_lo": 1,
        "seq_hi": 9,
        "rows": 9,
        "seq_checksum": 45,
        "is_last": True,
        "watermark": database_clock.now(),
    }
    batch = HistoryBatch.objects.create(source=source, state="done", kept=5, ended_at=database_clock.now(), **about)
    file = DataFile.objects.create(source=source, path="v3/a", day="2026-11-14", rows=5, bytes=1)
    FileBatch.objects.create(file=file, batch=batch, rows=5)
    return batch


@pytest.mark.parametrize("path", ["/history/", "/history/days/"])
def test_history_is_in_the_navigation_under_trends(as_viewer: Client, batch: HistoryBatch, path: str) -> None:
    assert re.search(r'data-page="trends"[^>]* aria-current="page"', as_viewer.get(path).content.decode())


def test_rejected_rows_are_shown_with_their_reasons(as_viewer: Client, batch: HistoryBatch) -> None:
    HistoryBatch.objects.update(rejected={"its headers are no JSON object": 3, "nothing says when it ended": 1})
    page = as_viewer.get("/history/").content.decode()
    assert "Its headers are no JSON object" in page
    assert "Nothing says when it ended" in page
    assert "rejected-v1" in page


def test_a_stall_is_told_as_the_warning_tells_it(as_viewer: Client, batch: HistoryBatch, settings: Settings) -> None:
    HistorySource.objects.update(
        watermark=database_clock.now() - timedelta(minutes=20), blocked_reason="Somebody is writing."
    )
    assert "stands still" not in as_viewer.get("/history/").content.decode()
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}
    page = as_viewer.get("/history/").content.decode()
    assert "stands still: complete up to 20\u00a0min" in page
    assert "ago, the limit is 15\u00a0min" in page
    assert "Somebody is writing." in page


def test_statement_to_run_can_be_copied(as_viewer: Client, batch: HistoryBatch, settings: Settings) -> None:
    """The warning shows it too."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}
    source = HistorySource.objects.get()
    assert "Copy the statement" not in as_viewer.get("/history/").content.decode()
    why = f"A standby was promoted. {ledger.to_go_on(source)} Nothing of it is read before that."
    HistorySource.objects.update(watermark=database_clock.now() - timedelta(minutes=20), blocked_reason=why)
    page = as_viewer.get("/history/").content.decode()
    said = """update pgqueue_console.pgqueue_historysource set oid = null where "table" = '"public"."audit"';"""
    assert f'data-copy="{escape(said)}"' in page
    (warned,) = history_stalled.stalled(database_clock.now())
    assert said in warned.said.meaning


def test_operator_cancels_and_recomputes(as_operator: Client, batch: HistoryBatch) -> None:
    HistoryBatch.objects.update(state="planned")
    page = as_operator.get("/history/").content.decode()
    assert "/history/cancel/" in page
    assert "Cancel the batch being read in demo?" in page
    assert "It ends a batch of 9 rows of &quot;public&quot;.&quot;audit&quot;. Nothing is lost" in page
    said = as_operator.post("/history/cancel/", follow=True).content.decode()
    assert "Cancelled: 1 batch. Nothing is lost" in said
    assert "Reading rests until" in said
    assert "/history/cancel/" not in said
    HistoryBatch.objects.update(state="done")
    days = {"since": "2026-11-14", "until": "2026-11-14"}
    page = as_operator.post("/history/recompute/", days, follow=True).content.decode()
    assert "1 day will be counted again from the files." in page
    assert "/history/cancel/" in page
    said = as_operator.post("/history/cancel/", follow=True).content.decode()
    assert "Cancelled: 1 day to be counted again. Nothing is lost" in said
    assert [(entry.who, entry.verb) for entry in AuditEntry.objects.order_by("id")] == [
        ("ana", "cancel"),
        ("ana", "recompute"),
        ("ana", "cancel"),
    ]


def test_cancel_says_what_becomes_of_each_task(as_operator: Client, batch: HistoryBatch) -> None:
    """Only tables are read again in an hour; a day to recompute waits until somebody asks again."""
    RecomputeRequest.objects.create(day="2026-11-14", asked_at=database_clock.now())
    asked = "It ends 1 day to be counted again. Nothing is lost; figures stay as they are, and are counted again when"
    assert asked in as_operator.get("/history/").content.decode()
    said = as_operator.post("/history/cancel/", follow=True).content.decode()
    assert "Cancelled: 1 day to be counted again. Nothing is lost; figures stay as they are" in said
    assert "in an hour" not in said
    about = {"source": batch.source, "day": "2026-11-14", "token": uuid4(), "rows": 5, "bytes_before": 4_000_000}
    HistoryCompaction.objects.create(files=24, **about)
    assert "Nothing is lost; a day is compacted again in an hour" in as_operator.get("/history/").content.decode()


def test_a_batch_that_was_cancelled_has_nothing_behind_it(as_operator: Client, batch: HistoryBatch) -> None:
    HistoryBatch.objects.update(state="running", step="written", started_at=database_clock.now())
    assert "running: read and written" in as_operator.get("/history/").content.decode()
    said = as_operator.post("/history/cancel/", follow=True).content.decode()
    assert "read and written" not in said
    assert "abandoned" in said
    assert "Cancelled by ana." in said


def test_paused_reading_says_so_until_read_now(as_operator: Client, batch: HistoryBatch, settings: Settings) -> None:
    """With the number of paused tables: others are read meanwhile. Other blocking reasons stay on the page."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}
    HistorySource.objects.create(
        table="other",
        cursor_kind="numbers",
        watermark=database_clock.now(),
        blocked_reason="Its sequence was restarted.",
    )
    HistoryBatch.objects.update(state="planned")
    said = " ".join(as_operator.post("/history/cancel/", follow=True).content.decode().split())
    assert "Reading of 1 of 2 tables rests until" in said
    assert said.count("It is read again in an hour, or when somebody presses Read now.") == 1
    page = as_operator.post("/history/run/", follow=True).content.decode()
    assert "rests until" not in page
    assert "It is read again in an hour" not in page
    assert "Its sequence was restarted." in page


def test_a_table_that_is_gone_is_named_with_how_far_it_was_read(as_viewer: Client, batch: HistoryBatch) -> None:
    HistorySource.objects.update(exists=False)
    page = " ".join(as_viewer.get("/history/").content.decode().split())
    assert "&quot;public&quot;.&quot;audit&quot;</code> is read no more: it was dropped or renamed" in page
    assert "No source yet" not in page


def test_the_size_is_that_of_messages_and_all_else_is_named(
    as_viewer: Client, batch: HistoryBatch, settings: Settings
) -> None:
    """Somebody who compares it with the folder can account for each byte."""
    for dataset, size in (("rejected", 1_000), ("depth", 2_000), ("events", 4_000)):
        DataFile.objects.create(source=batch.source, dataset=dataset, path=dataset, rows=1, bytes=size)
    HistoryBatch.objects.update(rejected={"its headers are no JSON object": 3})
    page = words(as_viewer.get("/history/").content.decode())
    assert "beside 3 files (7 kB) of rejected rows, depths and events" in page
    assert "PGQUEUE_HISTORY_RETENTION_DAYS" not in page
    settings.PGQUEUE = {**settings.PGQUEUE, "HISTORY_RETENTION_DAYS": 30}
    assert "those of the last 30 days only ( PGQUEUE_HISTORY_RETENTION_DAYS )" in words(
        as_viewer.get("/history/").content.decode()
    )


def test_before_figures_are_made_anew_it_says_of_which_days(as_operator: Client, batch: HistoryBatch) -> None:
    rolled_up(datetime(2026, 11, 13, tzinfo=UTC), 6, grain="day")
    page = as_operator.get("/history/days/", {"since": "0001-01-01", "until": "9999-12-31"}).content.decode()
    assert "Recompute 1 day in demo?" in page
    assert "2026-11-14, UTC: counts, times" in page
    assert "from 5 messages in files" in " ".join(page.split())
    assert "1 day is left unchanged" in page
    assert 'name="until" value="2026-11-14"' in page
    assert not RecomputeRequest.objects.exists()


def test_days_without_files_are_no_question(as_operator: Client, batch: HistoryBatch) -> None:
    page = as_operator.get("/history/days/", {"since": "2026-11-20", "until": "2026-11-21"}).content.decode()
    assert "the history files hold no messages for these days" in page
    assert "/history/recompute/" not in page
    assert "name a first and a last day" in as_operator.get("/history/days/", {"since": "x"}).content.decode()


@pytest.mark.parametrize(
    "days", [{}, {"since": "2026-11-15", "until": "2026-11-14"}, {"since": "2026-99-99", "until": "x"}]
)
def test_days_that_are_none_change_nothing(as_operator: Client, batch: HistoryBatch, days: dict[str, str]) -> None:
    said = as_operator.post("/history/recompute/", days, follow=True).content.decode()
    assert "Nothing is recomputed: name a first and a last day" in said
    assert not AuditEntry.objects.exists()


def test_a_batch_says_how_long_it_took(as_viewer: Client, batch: HistoryBatch) -> None:
    assert batch.ended_at is not None
    HistoryBatch.objects.update(started_at=batch.ended_at - timedelta(seconds=3))
    page = as_viewer.get("/history/").content.decode()
    assert ">3.0 s<" in page.replace("\u00a0", " ")
    assert ">3</span> <small>/s" in page.replace("\u00a0", " ")


def test_viewers_acts_are_refused_with_the_right_they_need(as_viewer: Client, batch: HistoryBatch) -> None:
    HistoryBatch.objects.update(state="planned")
    days = {"since": "2026-11-14", "until": "2026-11-14"}
    for act, nothing in (("run", "asked for"), ("cancel", "cancelled"), ("recompute", "recomputed")):
        said = as_viewer.post(f"/history/{act}/", days, follow=True).content.decode()
        assert f"Nothing {'is' if act == 'recompute' else 'was'} {nothing}: " in said
        assert (
            "needs the right “Can start, stop, scale and pause endpoints”, which an administrator gives in Django admin"
            in said
        )
    assert HistoryBatch.objects.get().state == "planned"
    assert HistorySource.objects.filter(requested_at=None, paused_until=None).exists()
    assert not RecomputeRequest.objects.exists()
    assert not AuditEntry.objects.exists()


def test_compactions_are_listed(as_viewer: Client, batch: HistoryBatch) -> None:
    about = {"source": batch.source, "day": "2026-11-14", "token": uuid4(), "rows": 5, "bytes_before": 4_000_000}
    HistoryCompaction.objects.create(
        state="done", files=24, bytes_after=1_000_000, ended_at=database_clock.now(), **about
    )
    page = as_viewer.get("/history/").content.decode()
    assert "Compacted" in page
    assert all(said in page for said in ("2026-11-14", "24"))


def test_days_whose_files_are_gone_are_told(as_operator: Client, batch: HistoryBatch) -> None:
    rolled_up(datetime(2026, 11, 14, tzinfo=UTC), 6, grain="day")
    days = {"since": "2026-11-13", "until": "2026-11-14"}
    said = as_operator.post("/history/recompute/", days, follow=True).content.decode()
    assert "Nothing is recomputed: the history files hold no messages for these days. 1 day is left unchanged" in said


def test_each_day_says_how_it_stands(as_viewer: Client, batch: HistoryBatch) -> None:
    now = database_clock.now()
    RecomputeRequest.objects.create(day="2026-11-12", asked_at=now - HOUR, is_wanted=False, recomputed_at=now)
    RecomputeRequest.objects.create(day="2026-11-13", asked_at=now)
    failed = {"is_wanted": False, "error": "Spark has no room."}
    RecomputeRequest.objects.create(day="2026-11-14", asked_at=now - 2 * HOUR, **failed)
    page = as_viewer.get("/history/").content.decode()
    assert page.index("2026-11-13") < page.index("2026-11-12") < page.index("2026-11-14"), (
        "what was asked for last is first"
    )
    assert "not counted again: Spark has no room." in page
