"""Days are recomputed from their files: completely, alone, and only if all counted rows are in files. No Spark."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.history import ledger
from pgqueue_admin.history.anomalies import hourly_totals
from pgqueue_admin.history.plan import recompute_requests
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import (
    AuditEntry,
    BaselineBucket,
    DataFile,
    FailureRollup,
    HistorySource,
    RecomputeRequest,
    RetryOutcome,
    Rollup,
    database_clock,
    history_requests,
    raw_sql,
)
from pgqueue_admin.models.raw_sql import console_sql
from tests.history.rollup_factory import failed, figures, rolled_up, told
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("console_database")
ANA = User(username="ana")
MONDAY = datetime(2026, 10, 19, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TUESDAY = MONDAY + DAY


@pytest.fixture(autouse=True)
def files(console_database: str) -> None:
    """Files of both days with as many rows as were counted: two, and one."""
    for at, rows in ((MONDAY, 2), (TUESDAY, 1)):
        rolled_up(at, rows, grain="day", endpoint="Sales")
        rolled_up(at + HOUR, rows, {100: rows}, grain="hour", endpoint="Sales")
        failed(at + HOUR, "f")
        told("m", at + HOUR, failed=1, last_failed_at=at + HOUR)
        filed(at.date(), rows)


def filed(day: date, rows: int) -> DataFile:
    number, source = DataFile.objects.count(), HistorySource.objects.get()
    return DataFile.objects.create(source=source, path=f"v3/{number}.parquet", day=day, rows=rows, bytes=1)


def asked(at: datetime = MONDAY) -> RecomputeRequest:
    history_requests.recompute(ANA, "console", at.date(), at.date())
    return RecomputeRequest.objects.get(day=at.date())


def anew(day: RecomputeRequest) -> None:
    """Recompute the day as seven messages and no failure."""
    row = Rollup.objects.filter(grain="day").first()
    assert row
    row.messages, row.at = 7, datetime.combine(day.day, datetime.min.time(), UTC)
    recompute_requests.recomputed(day, recompute_requests.files(day), [figures([row])])


def counted(grain: str = "day") -> dict[datetime, int]:
    return dict(Rollup.objects.filter(grain=grain).values_list("at", "messages"))


def test_all_of_a_day_is_made_anew_and_nothing_of_others() -> None:
    day = asked()
    assert recompute_requests.due() == day
    assert history_requests.wanted_now()
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.verb, entry.noun, entry.count) == ("ana", "recompute", "history", 1)
    anew(day)
    assert (counted(), counted("hour")) == ({MONDAY: 7, TUESDAY: 1}, {TUESDAY + HOUR: 1})
    for model in (FailureRollup, RetryOutcome):
        assert [row.first_at for row in model._default_manager.all()] == [TUESDAY + HOUR]
    assert not history_requests.wanted_now()
    assert recompute_requests.due() is None


def test_recompute_replaces_figures_of_batches_and_folded_rows() -> None:
    rolled_up(MONDAY, 3, grain="day", endpoint="Sales", batch=None)
    filed(MONDAY.date(), 3)
    anew(asked())
    assert counted() == {MONDAY: 7, TUESDAY: 1}


def test_recomputed_day_is_shown_at_once() -> None:
    """Its old counts and totals are gone; other steps are unchanged."""
    HistorySource.objects.update(watermark=TUESDAY + DAY)
    assert tasks.cut_trends() == 4
    anew(asked())
    assert tasks.cut_trends() == 1


def test_recomputed_hours_are_seen_by_the_baseline_again() -> None:
    HistorySource.objects.update(watermark=TUESDAY + DAY)
    filed(MONDAY.date(), 5)
    now = database_clock.now()
    hourly_totals.see(now)
    assert hourly_totals.see(now) == 0
    for _ in ("once", "and once more"):
        anew(asked())
        assert hourly_totals.see(now) == 24
        assert [step.messages for step in BaselineBucket.objects.filter(grain="day", endpoint="Sales", type="")] == [
            7,
            1,
        ]
        assert hourly_totals.see(now) == 0


def test_cancelled_recompute_keeps_the_figures() -> None:
    day = asked()
    assert history_requests.cancel(ANA, "console") == (0, 0, 1)
    assert not recompute_requests.is_wanted(day)
    with pytest.raises(ledger.Superseded):
        anew(day)
    assert counted() == {MONDAY: 2, TUESDAY: 1}
    assert RecomputeRequest.objects.get().error == "Cancelled by ana."


def test_second_recompute_request_supersedes_the_first() -> None:
    first = asked()
    assert asked().asked_at != first.asked_at
    with pytest.raises(ledger.Superseded):
        anew(first)
    assert recompute_requests.due()


def test_files_that_came_meanwhile_are_not_left_out() -> None:
    day = asked()
    before = recompute_requests.files(day)
    filed(MONDAY.date(), 1)
    with pytest.raises(recompute_requests.FilesMoved):
        recompute_requests.recomputed(day, before, [])
    assert counted() == {MONDAY: 2, TUESDAY: 1}
    assert recompute_requests.due() == day, "for the next turn"


def test_a_day_that_has_lost_files_is_not_recomputed() -> None:
    """Its figures would lose what retention deleted, even if that happens after the request."""
    DataFile.objects.filter(day=TUESDAY.date()).delete()
    assert history_requests.recompute(ANA, "console", MONDAY.date(), TUESDAY.date()) == ([MONDAY.date()], 1)
    rolled_up(MONDAY, 5, grain="day")
    day = RecomputeRequest.objects.get()
    with pytest.raises(history_requests.FilesLost):
        anew(day)
    recompute_requests.failed(day, "lost")
    assert (recompute_requests.due(), RecomputeRequest.objects.get().error) == (None, "lost")
    assert counted()[TUESDAY] == 1


def test_days_of_which_nothing_is_known_are_none() -> None:
    before = MONDAY.date() - DAY
    assert history_requests.recompute(ANA, "console", before, before) == ([], 0)
    assert not AuditEntry.objects.exists()


def test_a_day_is_made_anew_alone(console_database: str, connect: Callable[[str], Any]) -> None:
    """It waits for counting, totals and folding before it reads the list of files."""
    day, said = asked(), list[type[BaseException] | None]()

    def make_anew() -> None:
        try:
            anew(day)
        except recompute_requests.FilesMoved as moved:
            said.append(type(moved))
        connections.close_all()

    counting, making = connect(console_database), threading.Thread(target=make_anew)
    with counting.transaction():
        counting.run(console_sql.closed_periods.alone())
        making.start()
        until(lambda: counting.value(WAITS), what="it waits for its turn")
        filed(MONDAY.date(), 1)
    making.join(PATIENCE)
    assert said == [recompute_requests.FilesMoved]
    assert counted() == {MONDAY: 2, TUESDAY: 1}


def test_figures_of_a_day_are_found_by_indexes() -> None:
    """The end of a batch waits meanwhile, and one day's figures are few among years."""
    for each in YEARS:
        raw_sql.run(each, {"begin": TUESDAY})
    plans = [rows.explain() for rows in recompute_requests.figures_of(asked())]
    assert [plan for plan in plans if "Seq Scan" in plan] == []
    assert len(plans) == 3


_NAMED = "'q', 'Sales', 'Bill', 'Refused'"
YEARS = [
    f"""insert into pgqueue_console.pgqueue_rollup
      (grain, at, queue, endpoint, type, exception, result, messages, skewed, critical_buckets,
        critical_counts, processing_buckets, processing_counts, delivery_buckets, delivery_counts)
    select grain, %(begin)s::timestamptz - n * interval '1 hour', {_NAMED}, 'failed', 1, 0, b, b, b, b, b, b
    from generate_series(1, 8000) n, unnest(array['minute', 'hour']) grain, (select '{{}}'::int[] as b) empty""",
    f"""insert into pgqueue_console.pgqueue_failurerollup
      (at, queue, endpoint, type, exception, fingerprint, message, messages,
        first_at, last_at)
    select at, {_NAMED}, 'f', '', 1, at, at
    from generate_series(%(begin)s::timestamptz - interval '8000 hours', %(begin)s, interval '1 hour') at""",
    f"""insert into pgqueue_console.pgqueue_retryoutcome
      (message_id, queue, endpoint, type, exception, failed, succeeded, first_at,
        last_failed_at)
    select md5(at::text), {_NAMED}, 1, 0, at, at
    from generate_series(%(begin)s::timestamptz - interval '8000 hours', %(begin)s, interval '1 hour') at""",
    "analyze pgqueue_console.pgqueue_rollup, pgqueue_console.pgqueue_failurerollup",
    "analyze pgqueue_console.pgqueue_retryoutcome",
]
WAITS = """select count(*) from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())"""
