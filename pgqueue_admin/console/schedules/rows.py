"""Schedules for their list: trouble first, then by the next run; and the opening sentence."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from typing import Any, NamedTuple

from django.urls import reverse

from pgqueue_admin.alerts.periodic_looks import SCHEDULE_LATE
from pgqueue_admin.console import filter_syntax
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.formatting.times import day
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import cron_timetable
from pgqueue_admin.lease.schedules.cron_timetable import DateTimetable, Timetable
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.services import schedules
from pgqueue_admin.services.permissions import Refusal

FIELDS = ("queue", "state", "result")
SOON = timedelta(days=14)  # runs are planned 31 days ahead, and more are added each day
RECENT = timedelta(days=7)  # a missed run is trouble for so long


class RunResult(NamedTuple):
    """The outcome of a message. ``path``: of its archive row."""

    word: str
    tone: str = ""
    icon: str = "clock"
    detail: str = ""
    path: str = ""


NOT_YET = RunResult("not yet")
_ENDED = {
    "succeeded": RunResult("succeeded", "good", "ok"),
    "dead": RunResult("dead", "crit", "dead"),
    "dead_again": RunResult("dead again", "crit", "dead"),
    "retried": RunResult("dead, retried", "", "info"),
    "discarded": RunResult("dead, discarded", "", "quiet"),
}
_NOT_SEEN = RunResult("sent", "", "clock", "what became of it cannot be seen")
_OF_RUN = {
    "skipped": RunResult("missed, skipped", "warn", "warn"),
    "paused": RunResult("not sent: paused", "", "pause"),
}


@dataclass(frozen=True)
class ScheduleRow:
    """``of``: a row of ``listed`` in schedule.sql. ``still_waits``: its last message is in its queue; None: unknown."""

    of: Any
    now: datetime
    still_waits: bool | None

    @cached_property
    def _timetable(self) -> Timetable | ScheduleRefused:
        try:
            return cron_timetable.read(self.of.expression, self.of.zone)
        except ScheduleRefused as error:
            return error

    @property
    def words(self) -> str:
        """The expression in words, or why it cannot be parsed."""
        found = self._timetable
        return str(found) if isinstance(found, ScheduleRefused) else found.words()

    @property
    def queue(self) -> Address | None:
        return Address(self.of.queue_schema, self.of.queue_table) if self.of.kind == "transport" else None

    @property
    def refusal(self) -> Refusal | None:
        """Why queue scopes keep this person from acting on it."""
        return schedules.refusal(self.of)

    @property
    def key(self) -> str:
        return f"schedule.{self.of.id}"

    @property
    def result(self) -> RunResult:
        return result(self.of, self.still_waits) if self.of.ran_at else NOT_YET

    @property
    def is_overdue(self) -> bool:
        return bool(not self.of.paused_at and self.of.next_at and self.of.next_at < self.now - SCHEDULE_LATE)

    @property
    def is_over(self) -> bool:
        """Whether it is a date that has passed."""
        is_date = isinstance(self._timetable, DateTimetable)
        return self.of.next_at is None and is_date and self.of.planned_until > self.now

    @property
    def has_missed(self) -> bool:
        return bool(self.of.missed_as == "skipped" and self.of.missed_at > self.now - RECENT)

    @property
    def tone(self) -> str:
        if self.of.paused_at:
            return "grey"
        if self.of.error or self.is_overdue or self.result.tone == "crit":
            return "crit"
        return "warn" if self.has_missed else ""

    @property
    def next_day(self) -> str:
        """``Sat 28 Nov 2026 02:30`` in its own zone."""
        return said_day(self.of.next_local) if self.of.next_local else ""

    @property
    def missed_day(self) -> str:
        if not self.of.missed_at:
            return ""
        zone: tzinfo = UTC
        with suppress(ScheduleRefused):  # the zone may not exist any more
            zone = cron_timetable.tz_of(self.of.zone)
        return said_day(self.of.missed_at.astimezone(zone))


def said_day(local: datetime) -> str:
    return f"{day(local)} {local:%H:%M}"


def result(run: Any, still_waits: bool | None) -> RunResult:
    """The outcome of a row of ``listed`` or ``past``."""
    if run.ended_as == schedules.UNSEEN:
        return _NOT_SEEN
    if run.ended_as in _ENDED:
        why = run.exception_type or (run.result if run.result not in {"success", "failed"} else "") or ""
        return _ENDED[run.ended_as]._replace(detail=why, path=reverse("archived_message", args=[run.archive_id]))
    if run.waits or still_waits:
        return RunResult("waits", "", "clock", "in its queue")
    if still_waits is None:
        return _NOT_SEEN
    return RunResult("taken", "", "ok", "from its queue; did not die")


def of_run(run: Any, still_waits: bool | None) -> RunResult:
    """The outcome of a row of ``past``, also of one that was not sent."""
    return _OF_RUN.get(run.outcome) or result(run, still_waits)


def load(connection: Connection) -> tuple[list[ScheduleRow], Any]:
    """All schedules that this person may see, and the last look of a scheduler. Raises SchedulesMissing."""
    store = schedules.store_of(connection)
    found, looked = schedules.listed(connection, store), store.looked(connection)
    waits = still_waiting(connection, found)
    rows = [ScheduleRow(each, looked.now, waits.get(each.row_id)) for each in found]
    return sorted(rows, key=_gravity), looked


def still_waiting(connection: Connection, runs: Sequence[Any]) -> dict[Any, bool | None]:
    """Which messages are still in the queue that they were sent to, by row id: each is looked up by its key."""
    asked = [(Address(run.ran_schema, run.ran_table), run.row_id) for run in runs if run.row_id and not run.ended_as]
    none: dict[Any, bool | None] = {None: False}  # a lease message: the archive and its own table tell
    if not asked:
        return none
    tables = discovery.by_shape(connection, queue_database().schemas)
    keyed = {each.address for each in tables if each.has_primary_key and not each.why_unread}
    known = [each for each in asked if each[0] in keyed]
    there = zip(known, browse.are_there(connection, known), strict=True)
    return none | {row_id: None for _, row_id in asked} | {row_id: answer for (_, row_id), answer in there}


def matching(rows: Iterable[ScheduleRow], wanted: filter_syntax.FilterTerms) -> list[ScheduleRow]:
    return [row for row in rows if _holds(row, wanted)]


def verdict(rows: Sequence[ScheduleRow]) -> tuple[str, str]:
    """State and sentence."""
    if not rows:
        return "good", "No schedule yet"
    count = pluralize(len(rows), "schedule")
    if overdue := sum(row.is_overdue for row in rows):
        one = overdue == 1
        return "crit", f"{count}: {overdue} {'is' if one else 'are'} due, and nobody sends {'it' if one else 'them'}"
    parts = [
        (sum(bool(row.of.error) for row in rows), "cannot be sent", "cannot be sent"),
        (sum(row.result.tone == "crit" for row in rows), "ended dead", "ended dead"),
        (sum(row.has_missed for row in rows), "was missed", "were missed"),
    ]
    wrong = [f"{number} {one if number == 1 else many}" for number, one, many in parts if number]
    if wrong:
        return ("crit" if parts[0][0] else "warn"), f"{count}: {', '.join(wrong)}"
    return "good", f"{count}: nothing is overdue, dead or missed"


def planned_until(rows: Iterable[ScheduleRow]) -> datetime | None:
    """Until when runs are planned, if that is less than SOON: nothing has added due times for weeks."""
    ends = [row.of.planned_until for row in rows if row.of.planned_until < row.now + SOON]
    return min(ends, default=None)


def _gravity(row: ScheduleRow) -> tuple[int, float, str]:
    order = {"crit": 0, "warn": 1, "": 2, "grey": 3}[row.tone]
    return order, row.of.next_at.timestamp() if row.of.next_at else float("inf"), row.of.name


def _holds(row: ScheduleRow, wanted: filter_syntax.FilterTerms) -> bool:
    state = "paused" if row.of.paused_at else "over" if row.is_over else "planned"
    to = schedules.to_of(row.of).lower()
    fields = {"queue": to, "state": state, "result": row.result.word}
    text = f"{row.of.name} {row.of.message_type} {to} {row.words}".lower()
    return all(word in text for word in wanted.words) and all(value in fields[name] for name, value in wanted.fields)
