"""Days are made anew from their files: whole, alone, and only where all that was counted is in files. No Spark."""

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.judging import seen
from pgqueue_admin.pipeline.plan import days
from pgqueue_admin.records import asking, clock, history
from pgqueue_admin.records.models import (
    AuditEntry,
    FailureRollup,
    HistoryDay,
    HistoryFile,
    HistorySource,
    Rollup,
    SeenStep,
    StoryPart,
)
from tests.pipeline.counted import failed, rolled_up, told
from tests.pipeline.figures import figures
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("console_database")
ANA = User(username="ana")
MONDAY = datetime(2026, 10, 19, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
TUESDAY = MONDAY + DAY


@pytest.fixture(autouse=True)
def files(console_database: str) -> None:
    """Of both days, as many rows as were counted: two, and one."""
    for at, rows in ((MONDAY, 2), (TUESDAY, 1)):
        rolled_up(at, rows, grain="day", endpoint="Sales")
        rolled_up(at + HOUR, rows, {100: rows}, grain="hour", endpoint="Sales")
        failed(at + HOUR, "f")
        told("m", at + HOUR, failed=1, last_failed_at=at + HOUR)
        filed(at.date(), rows)


def filed(day: date, rows: int) -> HistoryFile:
    number, source = HistoryFile.objects.count(), HistorySource.objects.get()
    return HistoryFile.objects.create(source=source, path=f"v3/{number}.parquet", day=day, rows=rows, bytes=1)


def asked(at: datetime = MONDAY) -> HistoryDay:
    history.recompute(ANA, "console", at.date(), at.date())
    return HistoryDay.objects.get(day=at.date())


def anew(day: HistoryDay) -> None:
    """Seven messages, and no failure."""
    row = Rollup.objects.filter(grain="day").first()
    assert row
    row.messages, row.at = 7, datetime.combine(day.day, datetime.min.time(), UTC)
    days.recomputed(day, days.files(day), [figures([row])])


def counted(grain: str = "day") -> dict[datetime, int]:
    return dict(Rollup.objects.filter(grain=grain).values_list("at", "messages"))


def test_all_of_a_day_is_made_anew_and_nothing_of_others() -> None:
    day = asked()
    assert days.due() == day
    assert history.wanted_now()
    entry = AuditEntry.objects.get()
    assert (entry.who, entry.verb, entry.noun, entry.count) == ("ana", "recompute", "pipeline", 1)
    anew(day)
    assert (counted(), counted("hour")) == ({MONDAY: 7, TUESDAY: 1}, {TUESDAY + HOUR: 1})
    for model in (FailureRollup, StoryPart):
        assert [row.first_at for row in model._default_manager.all()] == [TUESDAY + HOUR]
    assert not history.wanted_now()
    assert days.due() is None


def test_what_batches_left_and_what_was_folded_go_together() -> None:
    rolled_up(MONDAY, 3, grain="day", endpoint="Sales", batch=None)
    filed(MONDAY.date(), 3)
    anew(asked())
    assert counted() == {MONDAY: 7, TUESDAY: 1}


def test_what_is_recomputed_is_shown_at_once() -> None:
    """What was counted and cut of its steps before is not; that of others is."""
    HistorySource.objects.update(complete_to=TUESDAY + DAY)
    assert tasks.cut_trends() == 4
    anew(asked())
    assert tasks.cut_trends() == 1


def test_what_is_usual_sees_its_hours_again() -> None:
    HistorySource.objects.update(complete_to=TUESDAY + DAY)
    filed(MONDAY.date(), 5)
    now = clock.now()
    seen.see(now)
    assert seen.see(now) == 0
    for _ in ("once", "and once more"):
        anew(asked())
        assert seen.see(now) == 24
        assert [step.messages for step in SeenStep.objects.filter(grain="day", endpoint="Sales", type="")] == [7, 1]
        assert seen.see(now) == 0


def test_what_nobody_asks_for_any_more_keeps_its_figures() -> None:
    day = asked()
    assert history.cancel(ANA, "console") == (0, 0, 1)
    assert not days.is_wanted(day)
    with pytest.raises(ledger.Superseded):
        anew(day)
    assert counted() == {MONDAY: 2, TUESDAY: 1}
    assert HistoryDay.objects.get().error == "Cancelled by ana."


def test_who_asks_once_more_gets_what_is_read_from_then_on() -> None:
    first = asked()
    assert asked().asked_at != first.asked_at
    with pytest.raises(ledger.Superseded):
        anew(first)
    assert days.due()


def test_files_that_came_meanwhile_are_not_left_out() -> None:
    day = asked()
    before = days.files(day)
    filed(MONDAY.date(), 1)
    with pytest.raises(days.Moved):
        days.recomputed(day, before, [])
    assert counted() == {MONDAY: 2, TUESDAY: 1}
    assert days.due() == day, "for the next turn"


def test_a_day_that_has_lost_files_is_not_recomputed() -> None:
    """Its figures would lose what retention took; also where that happens after somebody asked."""
    HistoryFile.objects.filter(day=TUESDAY.date()).delete()
    assert history.recompute(ANA, "console", MONDAY.date(), TUESDAY.date()) == ([MONDAY.date()], 1)
    rolled_up(MONDAY, 5, grain="day")
    day = HistoryDay.objects.get()
    with pytest.raises(history.FilesLost):
        anew(day)
    days.failed(day, "lost")
    assert (days.due(), HistoryDay.objects.get().error) == (None, "lost")
    assert counted()[TUESDAY] == 1


def test_days_of_which_nothing_is_known_are_none() -> None:
    before = MONDAY.date() - DAY
    assert history.recompute(ANA, "console", before, before) == ([], 0)
    assert not AuditEntry.objects.exists()


def test_days_that_a_part_of_a_story_spans_are_all_recomputed() -> None:
    """As batches left them once: it goes with its first day, and what it told of the others has to be made anew."""
    told("old", MONDAY - DAY, last_failed_at=MONDAY + HOUR, last_succeeded_at=TUESDAY)
    asking.run(import_module("pgqueue_admin.records.migrations.0009_folded").SPANNING, {})
    wanted = HistoryDay.objects.filter(is_wanted=True).order_by("day")
    assert [each.day for each in wanted] == [at.date() for at in (MONDAY - DAY, MONDAY, TUESDAY)]


def test_a_day_is_made_anew_alone(console_database: str, connect: Callable[[str], Any]) -> None:
    """Whoever counts, cuts or folds meanwhile is waited for before its files are looked at."""
    day, said = asked(), list[type[BaseException] | None]()

    def make_anew() -> None:
        try:
            anew(day)
        except days.Moved as moved:
            said.append(type(moved))
        connections.close_all()

    counting, making = connect(console_database), threading.Thread(target=make_anew)
    with counting.transaction():
        counting.run(postgresql().cut_steps.alone())
        making.start()
        until(lambda: counting.value(WAITS), what="it waits for its turn")
        filed(MONDAY.date(), 1)
    making.join(PATIENCE)
    assert said == [days.Moved]
    assert counted() == {MONDAY: 2, TUESDAY: 1}


def test_what_goes_is_found_by_indexes() -> None:
    """Whoever ends a batch waits meanwhile, and of years the figures of one day are few."""
    for each in YEARS:
        asking.run(each, {"begin": TUESDAY})
    plans = [rows.explain() for rows in days.figures_of(asked())]
    assert [plan for plan in plans if "Seq Scan" in plan] == []
    assert len(plans) == 3


_NAMED = "'q', 'Sales', 'Bill', 'Refused'"
YEARS = [
    f"""insert into pgqueue_console.pgqueue_rollup
      (grain, at, queue, endpoint, type, exception, result, messages, skewed, critical,
        critical_n, processing, processing_n, delivery, delivery_n)
    select grain, %(begin)s::timestamptz - n * interval '1 hour', {_NAMED}, 'failed', 1, 0, b, b, b, b, b, b
    from generate_series(1, 8000) n, unnest(array['minute', 'hour']) grain, (select '{{}}'::int[] as b) empty""",
    f"""insert into pgqueue_console.pgqueue_failurerollup
      (at, queue, endpoint, type, exception, fingerprint, message, messages,
        first_at, last_at)
    select at, {_NAMED}, 'f', '', 1, at, at
    from generate_series(%(begin)s::timestamptz - interval '8000 hours', %(begin)s, interval '1 hour') at""",
    f"""insert into pgqueue_console.pgqueue_storypart
      (message_id, queue, endpoint, type, exception, failed, succeeded, first_at,
        last_failed_at)
    select md5(at::text), {_NAMED}, 1, 0, at, at
    from generate_series(%(begin)s::timestamptz - interval '8000 hours', %(begin)s, interval '1 hour') at""",
    "analyze pgqueue_console.pgqueue_rollup, pgqueue_console.pgqueue_failurerollup, pgqueue_console.pgqueue_storypart",
]
WAITS = """select count(*) from pg_locks where locktype = 'advisory' and not granted
    and database = (select oid from pg_database where datname = current_database())"""
