"""Depth, rates and age over years: samples folded to minutes, hours and days, and live ones after them."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import transaction

from pgqueue_admin.models.raw_sql import console_sql, rows_of, run
from pgqueue_admin.models.time_grains import STEPS, floor
from pgqueue_admin.models.trends_retention import kept_for

LATE = timedelta(seconds=30)  # a look at many queues is written when it is over
ALL = 0  # all input queues together


class DepthPoint(NamedTuple):
    """A step. What samples did not know is None; the longest wait is that of a message that was ready."""

    low: int
    median: int
    high: int
    in_per_second: float | None = None
    out_per_second: float | None = None
    rated_minutes: int | None = None  # of how many minutes the rates are
    oldest_seconds: float | None = None
    oldest_at_least: bool | None = None  # it may have waited longer
    unread: int | None = None  # of all together: queues that could not be read at a look, and are in no figure of it
    how: str | None = None  # counted, capped, estimate, about-least; None of steps folded before it was kept
    is_live: bool = False  # not folded yet, because it is not over or only just


@transaction.atomic
def fold(now: datetime) -> int:
    """Fold what is over, forget what is too old; how many steps came. Samples may be thinned after it, not before."""
    over = now - LATE
    made = run(_filled("fold_minutes", "figures", "of_samples", "depths", "worst"), {"until": floor(over, "minute")})
    for grain in ("hour", "day"):
        larger = _filled("fold_larger", "figures", "of_minutes", "worst")
        made += run(larger, {"grain": grain, "step": STEPS[grain], "until": floor(over, grain)})
    for grain, kept in kept_for().items():
        run(console_sql.samples.forget_depths(), {"grain": grain, "before": now - kept})
    return made


def steps(queue: int, grain: str, since: datetime, until: datetime) -> dict[int, DepthPoint]:
    """By the second (Unix) at which a step begins; steps without a sample are absent. ``queue``: its id, or ALL."""
    query = _filled("depth", "figures", "of_samples", "of_minutes", "depths", "worst")
    about: dict[str, Any] = {"queue": queue, "grain": grain, "step": STEPS[grain], "since": since, "until": until}
    upto = [max(since, each or since) for each in rows_of(console_sql.samples.folded(), about)[0]]
    rows = rows_of(query, {**about, "steps": upto[0], "minutes": max(upto)})
    return {at: DepthPoint(*figures) for at, *figures in rows}


def _filled(name: str, *parts: str) -> Any:
    """A statement with the parts that several share."""
    samples = console_sql.samples
    return getattr(samples, name)(**{part: getattr(samples, part) for part in parts})
