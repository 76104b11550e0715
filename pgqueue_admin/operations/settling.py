"""What an operation left behind when a database or a process went away between its two commits."""

from datetime import datetime, timedelta

from pgqueue_admin.operations.freezing import forget
from pgqueue_admin.operations.running import reconcile
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import Operation

LOOKED_BACK = timedelta(days=1)
_GIVEN_UP = (Operation.State.CANCELLED, Operation.State.LAPSED)


def settle(now: datetime | None = None) -> None:
    """Drop sets that were never started and still are there, and count what was done of those that were started."""
    since = (now or clock.now()) - LOOKED_BACK
    for operation in Operation.objects.filter(state__in=_GIVEN_UP, ended_at__gt=since):
        if operation.started_at is None:
            forget(operation.pk)
        else:
            reconcile(operation.pk)
