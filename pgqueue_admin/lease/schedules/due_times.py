"""Due times are stored 31 days ahead, so that the database alone knows what is due, and pg_cron can send it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import takewhile

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.schedule_store import DueTime, Missed, Plan, ScheduleStore
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.lease.schedules import cron_timetable
from pgqueue_admin.lease.schedules.cron_timetable import Timetable

AHEAD = timedelta(days=31)


def plan(found: Timetable, missed: Missed, now: datetime) -> Plan:
    until = now + AHEAD
    return Plan(found.expression, found.zone, missed, list(_until(found, now, until)), until)


def extend(session: Connection, store: ScheduleStore) -> None:
    """Add due times to schedules with fewer than 30 days of them. An unreadable schedule gets an error."""
    for row in store.to_plan(session):
        now = store.now(session)
        since, until = max(row.planned_until, now - AHEAD), now + AHEAD
        try:
            found = cron_timetable.read(row.expression, row.zone)
        except ScheduleRefused as error:  # written by hand, or its zone was removed
            store.note_error(session, row.id, str(error))
            continue
        store.plan(session, row.id, row.version, list(_until(found, since, until)), until)


def _until(found: Timetable, since: datetime, until: datetime) -> Iterator[DueTime]:
    return takewhile(lambda due: due.at <= until, found.times(since))
