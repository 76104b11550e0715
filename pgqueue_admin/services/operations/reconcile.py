"""Reconciles operations that lost a process or a database between their two commits."""

from datetime import datetime, timedelta

from pgqueue_admin.models import Operation, database_clock
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import audit_intents
from pgqueue_admin.services.operations import crossings, queries
from pgqueue_admin.services.operations.runner import recount
from pgqueue_admin.services.operations.selection import forget

LOOKED_BACK = timedelta(days=1)
SOON = timedelta(minutes=10)  # a running chunk has ended by then; later an outage of the queues may be over
_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)  # how often this runs; how often it recounts an old one
_GIVEN_UP = (Operation.State.CANCELLED, Operation.State.LAPSED)


def settle(now: datetime | None = None) -> None:
    """Drop sets of operations that were never started, recount those that were, and settle crossings.

    Write an audit entry of unknown outcome for each act whose process was killed.
    """
    audit_intents.write_abandoned(now)
    for pk in queries.counted_here(crossings.settle()):
        recount(pk, only_changes=True)
    now = now or database_clock.now()
    with queue_database().read_session() as connection:
        audit_intents.write_left_behind(connection, now)
    for operation in Operation.objects.filter(state__in=_GIVEN_UP, ended_at__gt=now - LOOKED_BACK):
        age = now - operation.ended_at if operation.ended_at else SOON
        if operation.started_at is None:
            forget(operation.pk)
        elif age < SOON:
            recount(operation.pk)
        elif age % _HOUR < _MINUTE:  # a count reads the whole set
            recount(operation.pk, only_changes=True)
