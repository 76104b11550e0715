"""The state of history on the page: off, no process, dead, installing, failing, working, or nothing yet."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from pgqueue_admin.history.runtime import installation, java
from pgqueue_admin.models import AuditEntry, HistoryBatch, HistorySource, Process, database_clock
from tests.console.pages import Page
from tests.history.rollup_factory import batch
from tests.said_times import SHORT

MINUTE = timedelta(minutes=1)


@pytest.fixture
def page(as_viewer: Client) -> Page:
    return lambda: " ".join(unescape(re.sub(r"<[^>]*>", "", as_viewer.get("/history/").content.decode())).split())


@pytest.fixture(autouse=True)
def is_on(settings: Settings, console_database: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}


def process(role: str = "history", pid: int = 77, **facts: Any) -> Process:
    now = database_clock.now()
    known = {"host": "app-1", "pid": pid, "start_ticks": 1, "state": "running"}
    times = {"started_at": now - 90 * MINUTE, "heartbeat_at": now}
    return Process.objects.create(**{**known, **times, "role": role, **facts})


def test_switched_off_is_said_and_nothing_else_is_wrong(page: Page, settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    batch()
    HistorySource.objects.update(watermark=database_clock.now() - timedelta(days=3))
    process(heartbeat_at=database_clock.now() - 30 * MINUTE)
    text = page()
    assert "History is switched off. SPARK_MASTER is empty, so nothing that finishes after" in text
    assert "does not run" not in text


def test_read_now_is_refused_where_history_is_off(as_operator: Client, settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    said = as_operator.post("/history/run/", follow=True).content.decode()
    assert "Nothing was asked for: history is switched off." in said
    assert not AuditEntry.objects.filter(verb="run").exists()


def test_no_source_yet_is_said_only_after_a_first_look(page: Page) -> None:
    assert "No source yet" not in page()
    process()
    assert "No source yet" in page()


def test_without_any_process_it_says_who_keeps_one(page: Page) -> None:
    assert "History has never been read. No supervisor runs. Start one" in page()
    process("supervisor")
    assert "A supervisor runs, but its history process has not reported yet" in page()


class Py4JNetworkError(Exception):
    """Stands in for py4j's error, which only Spark's process imports."""


@pytest.mark.parametrize("error", [Py4JNetworkError("Error while sending or receiving"), ConnectionRefusedError(111)])
def test_a_spark_that_ended_is_said_with_what_becomes_of_its_batch(page: Page, error: Exception) -> None:
    process(last_error=java.said(error), last_error_at=database_clock.now())
    text = page()
    assert re.search(rf"History is not read since {SHORT}\. Spark ended while it read", text)
    assert "The batch it was at is read again from its start; nothing counts twice." in text
    assert "nothing is lost meanwhile" in text


def test_a_process_that_is_not_heard_of_is_dead_since_then(page: Page, as_viewer: Client) -> None:
    dead = process(heartbeat_at=database_clock.now() - 20 * MINUTE)
    text = page()
    assert "its process does not run since" in text
    assert re.search(r"\(20 min[^)]* ago\)\. It was last heard of then, on app-1, pid 77\.", text)
    assert "No supervisor runs to start it again. Start one: manage.py supervise" in text
    shown = as_viewer.get("/history/").content.decode()
    assert f'href="/workers/{dead.pk}/log/"' in shown
    assert '<a class="b" href="/workers/">Workers</a>' in shown


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "Its exit code is unknown. Nothing is lost meanwhile. The supervisor starts another"),
        ({"exit_code": 3}, "It ended with exit code 3."),
        ({"last_error": "ended by SIGKILL"}, "It ended by SIGKILL"),
    ],
)
def test_a_process_that_ended_says_how(page: Page, facts: dict[str, Any], said: str) -> None:
    process("supervisor", pid=1)
    process(
        ended_at=database_clock.now() - 5 * MINUTE,
        heartbeat_at=database_clock.now() - 5 * MINUTE,
        state="lost",
        **facts,
    )
    assert re.search(r"\(5 min[^)]* ago\)", page())
    assert said in page()


def test_libraries_on_their_way_are_no_failure(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PARTS", ("no_such_module",))
    process(last_error=installation.UNDER_WAY)
    text = page()
    assert f"{installation.UNDER_WAY} Its process runs since" in text
    assert "make setup" not in text


def test_error_of_a_running_process_is_shown(page: Page) -> None:
    process(last_error="RuntimeError: no room")
    assert "History is not read. RuntimeError: no room It is retried" in page()


def test_a_process_that_has_read_nothing_so_far_says_so(page: Page) -> None:
    process()
    assert "Nothing is read yet. Its process runs since" in page()
    batch()
    assert "Nothing is read yet" not in page()


def test_where_there_was_nothing_to_read_history_is_complete_all_the_same(page: Page) -> None:
    process()
    source = HistorySource.objects.create(table="messages.message_archive")
    assert "Nothing is read yet" in page()
    HistorySource.objects.filter(pk=source.pk).update(watermark=database_clock.now())
    text = page()
    assert "History is complete up to" in text
    assert "Nothing is read yet" not in text


def test_a_batch_that_is_read_says_since_when(page: Page) -> None:
    process()
    open_batch = batch(state="running", attempt=2, step="written", rows=9, started_at=database_clock.now() - 3 * MINUTE)
    text = page()
    assert f"Batch {open_batch.pk} is being read since" in text
    assert "9 rows of audit, try 2, read and written." in text
    assert len(re.findall(r"\(3 min[^)]* ago\)", text)) == 2, "above, and in its row"
    Process.objects.update(started_at=database_clock.now() - MINUTE)
    text = page()
    assert f"Batch {open_batch.pk} was left open since" in text, (
        "by a process that was killed: the next one is at another"
    )
    assert "The process that runs now reads it again from its beginning" in text
    Process.objects.update(heartbeat_at=database_clock.now() - 5 * MINUTE)
    text = page()
    assert f"Batch {open_batch.pk} was left open since" in text
    assert "The next process reads it again" in text
    HistoryBatch.objects.update(state="done")
    assert "was left open" not in page()


@pytest.mark.parametrize("opened", [False, True])
def test_one_notice_before_the_first_batch_ends_and_no_completeness(
    page: Page, as_viewer: Client, opened: bool
) -> None:
    """A table never read to its end must not be called complete up to the time when it was found."""
    source = HistorySource.objects.create(table='"public"."audit"', cursor_kind="numbers")
    HistorySource.objects.update(first_seen_at=database_clock.now() - 18 * MINUTE)
    process()
    if opened:
        about = {
            "seq_lo": 1,
            "seq_hi": 9,
            "rows": 9,
            "seq_checksum": 45,
            "is_last": True,
            "watermark": database_clock.now(),
        }
        HistoryBatch.objects.create(source=source, state="running", started_at=database_clock.now(), **about)
    text = page().replace("\u00a0", " ")
    assert "was never read to its end, and no batch of it has ended for 18 min, the limit is 15 min" in text
    assert "omplete up to" not in text.replace("Complete up to", "", 1)  # a column head
    read = as_viewer.get("/history/").content.decode().partition('id="read"')[2]
    assert read.count('class="notice') == 1
