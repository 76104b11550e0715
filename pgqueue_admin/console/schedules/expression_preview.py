"""Preview of a typed expression: in words, the next five times, and the effect of clock changes."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.console.schedules.form import ScheduleForm
from pgqueue_admin.console.schedules.rows import said_day
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import clock_changes, cron_timetable


class NextRun(NamedTuple):
    local: str
    utc: str
    at: datetime


@dataclass(frozen=True)
class ExpressionPreview:
    """``fault``: why it cannot be parsed; then the rest is empty."""

    words: str = ""
    zone: str = ""
    runs: tuple[NextRun, ...] = ()
    changes: tuple[str, ...] = ()
    fault: str = ""


def preview(form: ScheduleForm, now: datetime) -> ExpressionPreview:
    try:
        found = cron_timetable.read_to_come(form.expression, form.value("zone"), now)
    except ScheduleRefused as error:
        return ExpressionPreview(fault=str(error))
    due = cron_timetable.next_times(found, now)
    runs = tuple(NextRun(said_day(each.local), f"{each.at:%H:%M}", each.at) for each in due)
    return ExpressionPreview(found.words(), found.zone, runs, tuple(clock_changes.sentences(found, now)))
