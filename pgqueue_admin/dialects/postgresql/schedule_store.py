"""Schedules on PostgreSQL: ``messages.schedule`` and its due times (contract: dialects.schedule_store)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects.connection import Connection
from pgqueue_admin.dialects.schedule_store import DueTime, Plan, RunsDone, ScheduledMessage
from pgqueue_admin.dialects.statements import Statements

PLANNED_DAYS = 30  # with fewer ahead, more are planned


class PostgreSQLSchedules:
    """All times are by the server's clock."""

    def __init__(self, statements: Statements):
        self._sql = statements

    def is_installed(self, session: Connection) -> bool:
        return bool(session.value(self._sql.is_installed()))

    def now(self, session: Connection) -> datetime:
        found: datetime = session.value(self._sql.server_time())
        return found

    def listed(self, session: Connection, id: int | None = None) -> list[Any]:
        return session.all(self._sql.listed(columns=self._sql.columns), {"id": id})

    def unsent(self, session: Connection, late: timedelta) -> list[Any]:
        return session.all(self._sql.unsent(), {"late": late})

    def message(self, session: Connection, id: int) -> Any:
        return session.one(self._sql.message(), {"id": id})

    def id_of(self, session: Connection, name: str) -> int | None:
        found: int | None = session.value(self._sql.by_name(), {"name": name})
        return found

    def coming(self, session: Connection, id: int, most: int = 5) -> list[DueTime]:
        return [DueTime(*row) for row in session.all(self._sql.coming(most=most), {"id": id})]

    def past(self, session: Connection, id: int, most: int = 5) -> list[Any]:
        return session.all(self._sql.past(most=most), {"id": id})

    def looked(self, session: Connection) -> Any:
        return session.one(self._sql.looked())

    def due_in(self, session: Connection) -> float | None:
        seconds: float | None = session.value(self._sql.due_in())
        return seconds

    def add(self, session: Connection, name: str, message: ScheduledMessage, plan: Plan, who: str) -> int:
        about = {**_parameters(name, message, plan), **_columns(plan.due_times), "who": who}
        return int(session.value(self._sql.add(), about))

    def hold(self, session: Connection, id: int) -> Any:
        return session.one(self._sql.hold(), {"id": id})

    def change(self, session: Connection, id: int, name: str, message: ScheduledMessage, plan: Plan) -> None:
        session.run(self._sql.change(), {"id": id, **_parameters(name, message, plan)})
        session.run(self._sql.forget_coming(), {"id": id})
        held = self.hold(session, id)
        self.plan(session, id, held.version, plan.due_times, plan.until)

    def to_plan(self, session: Connection) -> list[Any]:
        return session.all(self._sql.to_plan(columns=self._sql.columns, ahead=PLANNED_DAYS))

    def plan(self, session: Connection, id: int, version: int, due_times: Sequence[DueTime], until: datetime) -> None:
        about = {"id": id, "version": version, "until": until}
        session.run(self._sql.plan(), {**about, **_columns(due_times)})
        session.run(self._sql.forget_past(), {"id": id})

    def note_error(self, session: Connection, id: int, error: str) -> None:
        session.run(self._sql.note_error(), {"id": id, "error": error})

    def run(self, session: Connection, who: str, most: int, grace: float) -> RunsDone:
        return RunsDone(*session.all(self._sql.run(most=most), {"grace": grace, "who": who})[0])

    def run_by_hand(self, session: Connection, id: int, due: DueTime, who: str) -> str | None:
        about = {"id": id, "due": due.at, "local": due.local, "who": who}
        message_id: str | None = session.value(self._sql.run_by_hand(), about)
        return message_id

    def pause(self, session: Connection, id: int, who: str) -> bool:
        return session.run(self._sql.pause(), {"id": id, "who": who}) == 1

    def resume(self, session: Connection, id: int) -> None:
        session.run(self._sql.resume(), {"id": id})

    def remove(self, session: Connection, id: int) -> bool:
        return session.run(self._sql.remove(), {"id": id}) == 1


def _parameters(name: str, message: ScheduledMessage, plan: Plan) -> dict[str, Any]:
    when = {"expression": plan.expression, "zone": plan.zone, "missed": plan.missed, "planned_until": plan.until}
    return {"name": name, **message._asdict(), **when}


def _columns(due_times: Sequence[DueTime]) -> dict[str, list[datetime]]:
    return {"dues": [each.at for each in due_times], "locals": [each.local for each in due_times]}
