"""A schedule was due and its message was not sent: nothing runs schedules, or the database refuses the insert.

First step: Read its last error on Schedules; if nothing runs them, start a supervisor or `manage.py schedule due`.
"""

from collections.abc import Iterator

from pgqueue_admin.alerts.finding import CRITICAL, Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.periodic_looks import SCHEDULE_LATE
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import warnings


def find(look: AlertSnapshot) -> Iterator[Finding]:
    for row in look.unsent_schedules or []:
        late = (row.now - row.due_at).total_seconds() if row.due_at else None
        said = warnings.schedule_not_sent(late, SCHEDULE_LATE.total_seconds(), row.error)
        yield Finding("schedule_not_sent", f"schedule {row.name}", said, CRITICAL)


def is_known(look: AlertSnapshot) -> bool:
    return look.unsent_schedules is not None


KIND = AlertKind("schedule_not_sent", "schedule not sent", find, can_tell=is_known)
