"""Protocol of schedules: messages sent at due times, and the outcome of each due time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

from pgqueue_admin.dialects.connection import Connection

Kind = Literal["lease", "transport"]
Missed = Literal["skip", "catch_up"]


class DueTime(NamedTuple):
    """``at`` in UTC; ``local``: the naive local time in the schedule's zone."""

    at: datetime
    local: datetime


class ScheduledMessage(NamedTuple):
    """The message to send. ``headers`` and ``message`` hold placeholders for ids and times.

    ``channel``: gets a NOTIFY when it is sent; None: no NOTIFY.
    """

    kind: Kind
    message: str
    message_type: str = ""
    queue_schema: str | None = None
    queue_table: str | None = None
    channel: str | None = None
    headers: str | None = None


class Plan(NamedTuple):
    """When to send. ``due_times``: all until ``until``."""

    expression: str
    zone: str
    missed: Missed
    due_times: Sequence[DueTime]
    until: datetime


class RunsDone(NamedTuple):
    """Number of due times sent, of those skipped, and of schedules whose message could not be inserted."""

    sent: int
    passed_over: int
    failed: int


class ScheduleStore(Protocol):
    """A row of ``listed``, ``to_plan``, ``past`` … has the columns that its statement names (schedule.sql)."""

    def is_installed(self, session: Connection) -> bool:
        """Whether its tables exist."""

    def now(self, session: Connection) -> datetime:
        """The time by the database's clock."""

    def listed(self, session: Connection, id: int | None = None) -> list[Any]:
        """All schedules by name, or this one: with next due time, last run and its result, and missed due times."""

    def unsent(self, session: Connection, late: timedelta) -> list[Any]:
        """Schedules, not paused, that are overdue by ``late`` (``due_at``) or refused by the database (``error``)."""

    def message(self, session: Connection, id: int) -> Any:
        """``message`` and ``headers``; None if the schedule does not exist."""

    def id_of(self, session: Connection, name: str) -> int | None: ...

    def coming(self, session: Connection, id: int, most: int = 5) -> list[DueTime]: ...

    def past(self, session: Connection, id: int, most: int = 5) -> list[Any]:
        """Outcomes of the latest due times, newest first."""

    def looked(self, session: Connection) -> Any:
        """``at`` and ``who`` of the last run, ``now``, and ``first_open``: the first open due time."""

    def due_in(self, session: Connection) -> float | None:
        """Seconds until the next future due time; None without one."""

    def add(self, session: Connection, name: str, message: ScheduledMessage, plan: Plan, who: str) -> int:
        """Add a schedule with its due times; return its id. Raises AlreadyExists."""

    def hold(self, session: Connection, id: int) -> Any:
        """Lock the row until the transaction ends: ``version``, ``paused_at`` and ``name``; None if it is gone."""

    def change(self, session: Connection, id: int, name: str, message: ScheduledMessage, plan: Plan) -> None:
        """Change a schedule, in a transaction that holds it. Past due times stay due. Raises AlreadyExists."""

    def to_plan(self, session: Connection) -> list[Any]:
        """Schedules planned for less than 30 days ahead."""

    def plan(self, session: Connection, id: int, version: int, due_times: Sequence[DueTime], until: datetime) -> None:
        """Add due times, and delete runs older than 31 days."""

    def note_error(self, session: Connection, id: int, error: str) -> None: ...

    def run(self, session: Connection, who: str, most: int, grace: float) -> RunsDone:
        """Claim due times and insert their messages, in one statement. ``grace``: seconds until one is missed."""

    def run_by_hand(self, session: Connection, id: int, due: DueTime, who: str) -> str | None:
        """Send an extra message; return its id. None if the schedule does not exist."""

    def pause(self, session: Connection, id: int, who: str) -> bool: ...
    def resume(self, session: Connection, id: int) -> None:
        """Resume; due times that passed during the pause are not sent."""

    def remove(self, session: Connection, id: int) -> bool: ...
