"""Depth, rates and age over years: samples folded into minutes, hours and days, followed by live samples."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction

from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.time_grains import STEPS, floor
from pgqueue_admin.models.trends_retention import kept_for

LATE = timedelta(seconds=30)  # a sample of many queues is written when the whole look is over
ALL = 0  # all input queues together


class DepthPoint(NamedTuple):
    """One step. None: no sample knew the figure. The longest wait is that of a ready message."""

    low: int
    median: int
    high: int
    in_per_second: float | None = None
    out_per_second: float | None = None
    rated_minutes: int | None = None  # how many minutes the rates cover
    oldest_seconds: float | None = None
    oldest_at_least: bool | None = None  # the message may have waited longer
    unread: int | None = None  # of all queues together: unreadable queues, which are in none of the figures
    how: str | None = None  # counted, capped, estimate, about-least; None for steps folded before this was kept
    is_live: bool = False  # not folded yet: the step is not over, or has only just ended


@transaction.atomic
def fold(now: datetime) -> int:
    """Fold finished steps and delete old ones; return how many steps were made. Thin samples only after folding."""
    over = now - LATE
    made = run(_filled("fold_minutes", "figures", "of_samples", "depths", "worst"), {"until": floor(over, "minute")})
    for grain in ("hour", "day"):
        larger = _filled("fold_larger", "figures", "of_minutes", "worst")
        made += run(larger, {"grain": grain, "step": STEPS[grain], "until": floor(over, grain)})
    for grain, kept in kept_for().items():
        run(console_sql.samples.forget_depths(), {"grain": grain, "before": now - kept})
    return made


def steps(queue: int, grain: str, since: datetime, until: datetime) -> dict[int, DepthPoint]:
    """Steps by the Unix second at which they begin; steps without a sample are absent. ``queue``: its id, or ALL."""
    query = _filled("depth", "figures", "of_samples", "of_minutes", "depths", "worst")
    about: dict[str, Any] = {"queue": queue, "grain": grain, "step": STEPS[grain], "since": since, "until": until}
    upto = [max(since, each or since) for each in rows_of(console_sql.samples.folded(), about)[0]]
    rows = rows_of(query, {**about, "steps": upto[0], "minutes": max(upto)})
    return {at: DepthPoint(*figures) for at, *figures in rows}


def _filled(name: str, *parts: str) -> Any:
    """A statement, filled with the parts that several statements share."""
    samples = console_sql.samples
    return getattr(samples, name)(**{part: getattr(samples, part) for part in parts})
