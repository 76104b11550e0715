"""History is switched on but stalled, or never began: Trends lack everything since.

First step: Read on Workers and History what it waits for, then resume it. Queues are not affected.
"""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds.kind import AlertKind
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.formatting import history
from pgqueue_admin.history.freshness import LIMIT, HistoryStall, stalls

_WORDS = {
    HistoryStall.How.BEHIND: history.stalled,
    HistoryStall.How.FIRST: history.unfinished,
    HistoryStall.How.UNBEGUN: history.unbegun,
}


def stalled(now: datetime) -> Iterator[Finding]:
    """One finding per table; none if history is switched off."""
    if not settings.PGQUEUE["SPARK_MASTER"]:
        return
    for stall in stalls(now):
        age = (now - stall.since).total_seconds()
        said = _WORDS[stall.how](age, LIMIT.total_seconds(), stall.table, stall.why)
        yield Finding("history_stalled", "history", said, cause=stall.table)


def find(look: AlertSnapshot) -> Iterator[Finding]:
    return stalled(look.now)


KIND = AlertKind("history_stalled", "history stands still", find)
