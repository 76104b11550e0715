"""A batch that keeps failing, as on a full disk, is retried after growing pauses; other tables are read."""

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User

from pgqueue_admin.history import ledger
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.runtime import java
from pgqueue_admin.history.sources import retry_backoff
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch, HistorySource, history_requests
from tests.history.failing_batch import later, planned, waiting
from tests.history.tables import audit_queue, died, put, read, told

WHY = "java.io.IOException: No space left on device"


@pytest.fixture
def source(database: Any) -> HistorySource:
    return waiting(database)


def failed(database: Any, source: HistorySource) -> HistoryBatch:
    batch = planned(database, source)
    ledger.failed(batch, ledger.begin(batch, "test"), WHY)
    ledger.went_wrong(source, WHY)
    batch.refresh_from_db()
    return batch


def test_failing_batch_is_retried_at_once_then_with_doubling_pauses(database: Any, source: HistorySource) -> None:
    first = failed(database, source)
    assert (told(source), retry_backoff.is_resting(source)) == (WHY, False)
    for tries, minutes in ((2, 1), (3, 2), (4, 4), (5, 8), (6, 10), (7, 10)):
        batch = failed(database, source)
        assert batch.ended_at
        assert (batch.pk, batch.attempt, batch.state) == (first.pk, tries, "planned"), "nothing is planned anew"
        assert told(source) == (
            f"{WHY}. Batch {batch.pk} was tried {tries} times since {batch.planned_at:%Y-%m-%d %H:%M:%S} UTC:"
            f" it is tried again after {batch.ended_at + timedelta(minutes=minutes):%H:%M:%S} UTC,"
            " or when somebody presses Read now."
        )
        later(minutes - 0.5)
        assert retry_backoff.is_resting(source)
        later(0.5)
        assert not retry_backoff.is_resting(source)


def test_read_now_skips_the_pause_once(database: Any, source: HistorySource) -> None:
    for _ in range(3):
        failed(database, source)
    assert retry_backoff.is_resting(source)
    history_requests.read_now(User.objects.create_user("somebody"), "console")
    source.refresh_from_db()
    assert not retry_backoff.is_resting(source)
    failed(database, source)
    source.refresh_from_db()
    assert retry_backoff.is_resting(source), "once, not for ever"


def test_successful_batch_ends_the_back_off(database: Any, source: HistorySource) -> None:
    for _ in range(3):
        failed(database, source)
    assert read(database, source) == [1]
    assert told(source) == ""
    put(database)
    failed(database, source)
    assert not retry_backoff.is_resting(source)


def test_batch_of_a_killed_driver_does_not_pause(database: Any, source: HistorySource) -> None:
    for _ in range(3):
        batch = planning.plan_batch(database, source)
        assert batch is not None
        ledger.begin(batch, "test")
    assert not retry_backoff.is_resting(source)
    ledger.begin(failed(database, source), "test")
    assert not retry_backoff.is_resting(source), "nor does one that is tried just now"


def test_where_java_has_ended_no_other_table_is_tried(
    database: Any, source: HistorySource, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would fail too, and pause with the table that crashes Java each time: it would never be read."""
    from pgqueue_admin.history.spark.jobs import batch as job

    died(database)
    tried = list[str]()

    def brings_java_down(_: Any, batch: HistoryBatch, *__: Any) -> None:
        tried.append(batch.source.table)
        ledger.failed(batch, ledger.begin(batch, "test"), "it ended")
        monkeypatch.setattr(java, "ended", lambda: -9)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(job, "run", brings_java_down)
    with pytest.raises(ConnectionRefusedError):
        BatchLoop("test", spark=SimpleNamespace(conf={"spark.master": "local[1]"})).run_once()
    assert tried == ["messages.message_archive"]
    assert not source.batches.exists()


def test_exit_code_of_java_is_given_after_its_connection_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when Java is killed: its connections close while the system still frees its memory."""

    def refuses() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    with subprocess.Popen(["sleep", "0.2"]) as child:
        monkeypatch.setattr(java, "gateway", lambda: SimpleNamespace(proc=child))
        with pytest.raises(java.JavaLost, match=r"Spark's Java has ended, with code 0\."):
            BatchLoop("test", spark=SimpleNamespace(stop=refuses)).close()


@pytest.mark.spark
def test_a_driver_leaves_it_alone_and_reads_others(
    database: Any,
    driver: Callable[..., BatchLoop],
    history: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Spark cannot write; the driver notices the repair after the pause or on request."""
    died(database)
    (archive,) = sources(database)
    history.mkdir()
    (history / "v3").write_text("a file in place of a folder")
    for _ in range(2):
        with pytest.raises(Exception, match="An error occurred"):
            driver().run_once()
    batch = archive.batches.get()
    assert (batch.state, batch.attempt) == ("planned", 2)
    place = f"org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:{history}/v3"
    assert batch.error == f"Py4JJavaError: {place}"
    assert f"History: batch {batch.pk} failed: An error occurred while calling" in caplog.text
    assert "\tat org.apache.spark." in caplog.text, "the trace is in the log that History links to"
    assert told(archive).startswith(f"{place}. Batch {batch.pk} was tried 2 times since ")
    (history / "v3").unlink()
    audit_queue(database)
    put(database)
    assert driver().run_once() == 1
    batch.refresh_from_db()
    assert (batch.state, batch.attempt) == ("planned", 2)
    later(1)
    assert driver().run_once() == 1
    assert told(archive) == ""
