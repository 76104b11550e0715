"""Who consumes a queue, said so that it is never more than can be known."""

from datetime import datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.records.board import Known, Newest
from pgqueue_admin.records.processes import OfEndpoint as Team
from pgqueue_admin.records.standings import Standing, State
from pgqueue_admin.wording import visible
from pgqueue_admin.wording.durations import duration
from pgqueue_admin.wording.figures import counted

__all__ = ["SEEMS_AFTER", "Said", "Team", "said"]

SEEMS_AFTER = timedelta(minutes=2)
RECEIVED_FROM = frozenset({"input", "lease"})


class Said(NamedTuple):
    words: str
    tone: str = ""
    nobody: bool = False


def said(queue: Known, latest: Newest | None, standing: Standing | None, now: datetime) -> Said:
    if standing is not None:
        return _ours(standing, latest)
    if queue.kind == "error" and queue.ingest:
        return Said("emptied into the archive")
    if queue.kind not in RECEIVED_FROM:
        return Said("not expected")
    return _foreign(latest, now)


def _ours(standing: Standing, latest: Newest | None) -> Said:
    by = f" by {visible.plain(standing.who)}" if standing.who else ""
    if standing.state is State.PAUSED:
        return Said(f"paused{by}")
    if standing.team.have:
        return Said(counted(standing.team.have, "process", "processes"))
    words = f"stopped{by}" if standing.state is State.STOPPED else "none"
    return Said(words, "crit" if latest and latest.ready else "", nobody=True)


def _foreign(latest: Newest | None, now: datetime) -> Said:
    """From outside, only locked rows and rows that leave can be seen."""
    if latest is None or latest.ready is None or latest.error:
        return Said("not known")
    if latest.in_flight:
        return Said("somebody receives")
    if latest.left_at and now - latest.left_at < SEEMS_AFTER:
        return Said("somebody receives")
    if not latest.ready:
        return Said("unknown while empty")
    if (left := SEEMS_AFTER - (now - latest.changed_at)) > timedelta():
        return Said(f"unknown for {duration(left.total_seconds())} more")
    return Said("no receiver seen", "crit", nobody=True)
