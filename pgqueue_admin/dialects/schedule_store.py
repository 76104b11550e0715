"""What schedules ask of a database: messages that are sent by the clock, and what became of each due time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

from pgqueue_admin.dialects.connection import Connection

Kind = Literal["lease", "transport"]
Missed = Literal["skip", "catch_up"]


class DueTime(NamedTuple):
    """``at`` in UTC; ``local``: what the clock says then in the schedule's zone, without a zone."""

    at: datetime
    local: datetime


class ScheduledMessage(NamedTuple):
    """What is sent. ``headers`` and ``message`` hold marks in the place of ids and times.

    ``channel``: told by NOTIFY when it is sent; None: nobody is.
    """

    kind: Kind
    message: str
    message_type: str = ""
    queue_schema: str | None = None
    queue_table: str | None = None
    channel: str | None = None
    headers: str | None = None


class Plan(NamedTuple):
    """When it is sent. ``due_times``: the next ones, all until ``until``."""

    expression: str
    zone: str
    missed: Missed
    due_times: Sequence[DueTime]
    until: datetime


class RunsDone(NamedTuple):
    """Due times that were sent, those that were passed over, and schedules whose message could not be inserted."""

    sent: int
    passed_over: int
    failed: int


class ScheduleStore(Protocol):
    """A row of ``listed``, ``to_plan``, ``past`` … has the columns that its statement names (schedule.sql)."""

    def is_installed(self, session: Connection) -> bool:
        """Whether its tables are there."""

    def now(self, session: Connection) -> datetime:
        """By the database's clock."""

    def listed(self, session: Connection, id: int | None = None) -> list[Any]:
        """All, or this one, by name: with the next due time, the last run and its result, and what was missed."""

    def unsent(self, session: Connection, late: timedelta) -> list[Any]:
        """Not paused, and due for longer than ``late`` (``due_at``), or refused by the database (``error``)."""

    def message(self, session: Connection, id: int) -> Any:
        """``message`` and ``headers``; None: there is no such schedule."""

    def id_of(self, session: Connection, name: str) -> int | None: ...

    def coming(self, session: Connection, id: int, most: int = 5) -> list[DueTime]: ...

    def past(self, session: Connection, id: int, most: int = 5) -> list[Any]:
        """What became of the latest due times, the newest first."""

    def looked(self, session: Connection) -> Any:
        """``at`` and ``who`` of the last run, ``now``, and ``first_open``: the first due time that is open."""

    def due_in(self, session: Connection) -> float | None:
        """Seconds until the next due time that is ahead; None: there is none."""

    def add(self, session: Connection, name: str, message: ScheduledMessage, plan: Plan, who: str) -> int:
        """With its due times; its id. Raises AlreadyExists."""

    def hold(self, session: Connection, id: int) -> Any:
        """``version``, ``paused_at`` and ``name``, which stay until the transaction ends; None: it is gone."""

    def change(self, session: Connection, id: int, name: str, message: ScheduledMessage, plan: Plan) -> None:
        """In a transaction that holds it. What was due before stays due. Raises AlreadyExists."""

    def to_plan(self, session: Connection) -> list[Any]:
        """Schedules whose due times end within 30 days."""

    def plan(self, session: Connection, id: int, version: int, due_times: Sequence[DueTime], until: datetime) -> None:
        """More due times, and forget runs that are 31 days old."""

    def note_error(self, session: Connection, id: int, error: str) -> None: ...

    def run(self, session: Connection, who: str, most: int, grace: float) -> RunsDone:
        """One statement: claims what is due and inserts it. ``grace``: seconds after which one is missed."""

    def run_by_hand(self, session: Connection, id: int, due: DueTime, who: str) -> str | None:
        """One message more; its id. None: there is no such schedule."""

    def pause(self, session: Connection, id: int, who: str) -> bool: ...
    def resume(self, session: Connection, id: int) -> None:
        """What has passed meanwhile is not sent."""

    def remove(self, session: Connection, id: int) -> bool: ...
