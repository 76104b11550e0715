"""Says who consumes a queue, and never claims more than can be known."""

from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models.endpoint_standings import Standing, State
from pgqueue_admin.models.queue_overview import Known, Newest

SEEMS_AFTER = timedelta(minutes=2)
RECEIVED_FROM = frozenset({"input", "lease"})


class ConsumerText(NamedTuple):
    words: str
    tone: str = ""
    nobody: bool = False


def said(queue: Known, latest: Newest | None, standing: Standing | None, now: datetime) -> ConsumerText:
    if standing is not None:
        return _ours(standing, latest)
    if queue.kind == "error" and queue.ingest:
        return ConsumerText("emptied into the archive")
    if queue.kind not in RECEIVED_FROM:
        return ConsumerText("not expected")
    return _foreign(latest, now)


def _ours(standing: Standing, latest: Newest | None) -> ConsumerText:
    by = f" by {escape_invisible.plain(standing.who)}" if standing.who else ""
    if standing.state is State.PAUSED:
        return ConsumerText(f"paused{by}")
    if standing.team.have:
        return ConsumerText(pluralize(standing.team.have, "process", "processes"))
    words = f"stopped{by}" if standing.state is State.STOPPED else "none"
    return ConsumerText(words, "crit" if latest and latest.ready else "", nobody=True)


def _foreign(latest: Newest | None, now: datetime) -> ConsumerText:
    """Judge a foreign queue: from outside, only locked rows and departures are visible."""
    if latest is None or latest.ready is None or latest.error:
        return ConsumerText("not known")
    if latest.in_flight:
        return ConsumerText("somebody receives")
    if latest.last_departure_at and now - latest.last_departure_at < SEEMS_AFTER:
        return ConsumerText("somebody receives")
    if not latest.ready:
        return ConsumerText("unknown while empty")
    if (left := SEEMS_AFTER - (now - latest.changed_at)) > timedelta():
        return ConsumerText(f"unknown for {duration(left.total_seconds())} more")
    return ConsumerText("no receiver seen", "crit", nobody=True)
