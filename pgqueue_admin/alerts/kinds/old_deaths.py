"""Messages that had failed long before, taken into the archive from an error queue: told once, as a pile."""

from collections.abc import Iterator
from datetime import timedelta

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.dialects.errors import AddressNotUnderstood
from pgqueue_admin.records.source import source
from pgqueue_admin.wording import warnings

STAYS = timedelta(days=1)
SETTLES = timedelta(minutes=1)  # an error queue comes in by batches: the mail says how many there are in all


def found(came_from: str, count: int) -> Found:
    """``told`` is 0: what an evaluation adds to the pile is counted on."""
    said = warnings.old_deaths(count, _table(came_from))
    return Found("old_deaths", came_from, said, queue=came_from, count=count, told=0)


def _table(address: str) -> str:
    try:
        return source().dialect.parse_address(address).table
    except AddressNotUnderstood:
        return address


def find(look: Look) -> Iterator[Found]:
    """Nothing: it is what happened, and not how things are."""
    return iter(())


KIND = Kind(
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
