"""History is switched on and stands still, or never began: of what happened since, Trends know nothing."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from pgqueue_admin.alerts.found import Found
from pgqueue_admin.alerts.kinds.kind import Kind
from pgqueue_admin.alerts.look import Look
from pgqueue_admin.pipeline.freshness import LIMIT, Stall, stalls
from pgqueue_admin.wording import history

_WORDS = {
    Stall.How.BEHIND: history.stalled,
    Stall.How.FIRST: history.unfinished,
    Stall.How.UNBEGUN: history.unbegun,
}


def stalled(now: datetime) -> Iterator[Found]:
    """One for each table; none where history is switched off."""
    if not settings.PGQUEUE["SPARK_MASTER"]:
        return
    for stall in stalls(now):
        age = (now - stall.since).total_seconds()
        said = _WORDS[stall.how](age, LIMIT.total_seconds(), stall.table, stall.why)
        yield Found("history_stalled", "history", said, cause=stall.table)


def find(look: Look) -> Iterator[Found]:
    return stalled(look.now)


KIND = Kind("history_stalled", "history stands still", find)
