"""Whether the console can read its queues: one judgement for pages, ``/readyz`` and the warning ``blind``."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, Protocol

from pgqueue_admin.models import LatestSample, database_clock, staleness

LOCKED = "55P03"


class LastRead(Protocol):
    """``at``: when the queue was last read. ``error``, ``sqlstate``: why later reads failed; empty if none did."""

    at: datetime
    error: str
    sqlstate: str


class UnreadQueues(NamedTuple):
    """``unread``: how many of ``of`` queues were not read for three samples; ``why``, ``sqlstate``: of most."""

    unread: int
    of: int
    since: datetime | None  # since when more than half are unread
    why: str
    sqlstate: str

    @property
    def is_blind(self) -> bool:
        """Whether more than half are unread. A single locked queue does not count, even if it is the only queue."""
        return 2 * self.unread > self.of and (self.unread > 1 or self.sqlstate != LOCKED)


def of(looks: Iterable[LastRead], now: datetime) -> UnreadQueues:
    known = list(looks)
    unread = sorted(
        (each for each in known if each.error and staleness.is_stale(each.at, now)), key=lambda each: each.at
    )
    if not unread:
        return UnreadQueues(0, len(known), None, "", "")
    ((why, sqlstate), _), *_ = Counter((each.error, each.sqlstate) for each in unread).most_common(1)
    half = len(known) // 2
    return UnreadQueues(len(unread), len(known), unread[min(half, len(unread) - 1)].at, why, sqlstate)


def current() -> UnreadQueues:
    """Judges the newest samples, now."""
    there = LatestSample.objects.filter(queue__gone_since=None)
    return of(there.only("at", "error", "sqlstate"), database_clock.now())
