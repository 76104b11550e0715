"""Messages that had failed long before, archived from an error queue: one notification for all.

First step: Look at them in the archive by cause; retry or discard them. No hurry: none is new.
"""

from collections.abc import Iterator
from datetime import timedelta

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import warnings
from pgqueue_admin.models.queue_database import queue_database

STAYS = timedelta(days=1)
SETTLES = timedelta(minutes=1)  # an error queue is archived in batches: the mail gives the total


def found(came_from: str, count: int) -> Finding:
    """``told`` is 0: an evaluation adds to the count."""
    said = warnings.old_deaths(count, _table(came_from))
    return Finding("old_deaths", came_from, said, queue=came_from, count=count, told=0)


def _table(address: str) -> str:
    try:
        return queue_database().dialect.parse_address(address).table
    except AddressUnreadable:
        return address


def find(look: AlertSnapshot) -> Iterator[Finding]:
    """Find nothing: the kind reports events, not a state."""
    return iter(())


KIND = AlertKind(
    "old_deaths",
    "taken over",
    find,
    mailed=True,
    counts=True,
    threshold="",
    settle=SETTLES,
    ends_silently=True,
    linger=STAYS,
)
