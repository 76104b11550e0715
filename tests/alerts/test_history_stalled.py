"""History that never started is warned of like history that stalled."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.history.freshness import LIMIT
from pgqueue_admin.models import ArchiveSample, HistorySource, LatestSample, Process, Queue, Sample, database_clock

MINUTE = timedelta(minutes=1)
AUDIT = '"public"."audit"'


@pytest.fixture(autouse=True)
def is_on(settings: Settings, console_database: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": "local[2]"}


def found() -> list[Finding]:
    now = database_clock.now()
    return list(BY_NAME["history_stalled"].find(AlertSnapshot(now=now, watching_since=now)))


def audited(since: timedelta, depth: int = 5, **facts: Any) -> None:
    """An audit queue, found long before, that has held messages for ``since``."""
    now = database_clock.now()
    queue = Queue.objects.create(schema="public", table="audit", kind="audit", **facts)
    Sample.objects.create(queue=queue, at=now - since - MINUTE, depth=0)
    Sample.objects.create(queue=queue, at=now - since, depth=depth)
    LatestSample.objects.create(queue=queue, at=now, changed_at=now, depth=depth)


def process(started: timedelta, **facts: Any) -> None:
    now = database_clock.now()
    known = {"role": "history", "host": "app-1", "pid": 7, "start_ticks": Process.objects.count()}
    Process.objects.create(**{**known, "started_at": now - started, "heartbeat_at": now, **facts})


def ended(started: timedelta, after: timedelta, **facts: Any) -> None:
    at = database_clock.now() - started + after
    process(started, ended_at=at, heartbeat_at=at, state="stopped", **facts)


def test_an_audit_queue_that_nobody_began_to_read_is_told_after_the_limit() -> None:
    audited(LIMIT + 5 * MINUTE)
    (warned,) = found()
    said = f"{warned.said.sentence} {warned.said.meaning}".replace("\u00a0", " ")
    assert f"History of {AUDIT} has not begun: its messages have waited for 20 min, the limit is 15 min" in said
    assert "No process for history has ever run. Nothing is lost" in said
    assert warned.identity == ("history_stalled", "history", AUDIT)


@pytest.mark.parametrize(
    ("since", "facts"),
    [
        (LIMIT - MINUTE, {}),
        (LIMIT + MINUTE, {"depth": 0}),
        (LIMIT + MINUTE, {"gone_since": database_clock.now}),
    ],
)
def test_audit_queue_within_the_limit_or_empty_is_no_warning(since: timedelta, facts: dict[str, Any]) -> None:
    audited(since, **{name: value() if callable(value) else value for name, value in facts.items()})
    assert found() == []


def test_dead_in_the_archive_warn_with_the_processs_error() -> None:
    process(LIMIT + 2 * MINUTE, last_error="Not installed: pyspark.\nmore")
    ArchiveSample.objects.create(at=database_clock.now() - 3 * LIMIT, dead=2)
    (warned,) = found()
    assert warned.cause == "messages.message_archive"
    assert warned.said.value.replace("\u00a0", " ") == "17 min", "since its process started"
    assert warned.said.meaning.startswith("Not installed: pyspark. Nothing is lost")


def test_switched_on_again_nothing_is_told_before_the_limit() -> None:
    """A process that ran before history was switched off could read nothing since."""
    audited(10 * LIMIT)
    ended(20 * LIMIT, LIMIT)
    process(5 * MINUTE)
    assert found() == []


def test_processes_that_follow_one_another_count_as_one() -> None:
    audited(10 * LIMIT)
    ended(20 * LIMIT, LIMIT)
    ended(2 * LIMIT, LIMIT, last_error="ended by SIGKILL")
    ended(LIMIT - MINUTE, MINUTE)
    process(5 * MINUTE, last_error="Not installed: pyspark.")
    (warned,) = found()
    assert warned.said.value.replace("\u00a0", " ") == "30 min"
    assert warned.said.meaning.startswith("Not installed: pyspark. Nothing is lost")


def test_the_process_that_runs_says_why_and_not_one_that_ended_beside_it() -> None:
    audited(2 * LIMIT)
    ended(2 * LIMIT, 2 * LIMIT, last_error="ended by SIGKILL")
    process(2 * LIMIT, heartbeat_at=database_clock.now() - timedelta(seconds=2), last_error="Not installed: pyspark.")
    (warned,) = found()
    assert warned.said.meaning.startswith("Not installed: pyspark. Nothing is lost")
    Process.objects.filter(ended_at=None).delete()
    (warned,) = found()
    assert warned.said.meaning.startswith("No process for history runs. ended by SIGKILL. Nothing is lost")


def test_a_table_that_the_ledger_has_is_judged_by_the_ledger() -> None:
    audited(LIMIT + 5 * MINUTE)
    HistorySource.objects.create(table=AUDIT, cursor_kind="numbers")
    assert found() == []


def test_switched_off_nobody_is_warned(settings: Settings) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    audited(LIMIT + 5 * MINUTE)
    assert found() == []
