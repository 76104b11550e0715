"""The baseline and range of each hour: quartiles of the same hour in the weeks before."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models.raw_sql import console_sql, rows_of

WEEKS = 8  # weeks compared
LEAST_WEEKS = 3  # before anything is judged
FENCE = 3  # times the interquartile range: Tukey calls a value beyond that far out
SPAN_MS, DEPTH = 20.0, 20.0  # smaller differences do not matter
CHANCE = 4  # times the square root of a count: the spread of chance alone


class BaselineRange(NamedTuple):
    low: float
    high: float


class Baseline(NamedTuple):
    """Quartiles of ``weeks`` weeks, each an observed value: a quarter of the weeks is at or below ``lower``."""

    lower: float
    median: float
    upper: float
    weeks: int

    def band(self, least: float) -> BaselineRange:
        """As wide as the weeks differ, at least half the median and ``least`` to either side; never below 0."""
        far, wide = FENCE * (self.upper - self.lower), max(self.median / 2, least)
        return BaselineRange(
            max(0.0, min(self.lower - far, self.median - wide)), max(self.upper + far, self.median + wide)
        )


class BaselineSet(NamedTuple):
    """One kind in one step; None: too few weeks. Spans in milliseconds; ``failed`` is a share of 0 to 1."""

    messages: Baseline | None
    failures: Baseline | None
    failed: Baseline | None  # of weeks with finished messages
    half: Baseline | None  # of weeks with timed messages
    nearly_all: Baseline | None
    all_but_one: Baseline | None  # 99th percentile


def of_messages(usual: Baseline) -> BaselineRange:
    """Adds one to the median: if zero is usual, five messages are outside the band."""
    return usual.band(CHANCE * math.sqrt(usual.median + 1))


def of_share(usual: Baseline, messages: int) -> BaselineRange:
    """Depends on ``messages``: one more failure means nothing of one, little of ten, and much of a thousand."""
    band = usual.band(CHANCE * math.sqrt(usual.median * messages + 1) / messages)
    return band._replace(high=min(1.0, band.high))


def of_span(usual: Baseline) -> BaselineRange:
    return usual.band(SPAN_MS)


def of_depth(usual: Baseline) -> BaselineRange:
    return usual.band(DEPTH)


# Baselines of an hour or day, read from the same step of the weeks before.
class BaselineSubject(NamedTuple):
    """An endpoint, or a queue of unknown endpoint, and a message type; empty means all."""

    queue: str = ""
    endpoint: str = ""
    type: str = ""


def of_one(subject: BaselineSubject, grain: str, at: Sequence[datetime], measure: str) -> dict[int, BaselineSet]:
    """By the Unix second at which a step begins; steps before the subject was first seen are absent.

    Empty for a queue whose messages name their endpoint: the baseline is the endpoint's.
    """
    if subject.queue and _names_endpoints(subject, grain, at):
        return {}
    found = _ask(console_sql.baseline.of_one, grain, at, measure, subject._asdict())
    return {at: usuals for (at, _), usuals in found.items()}


def of_each(at: Iterable[datetime]) -> dict[tuple[int, BaselineSubject], BaselineSet]:
    """Critical time in these hours, for each queue with all its types, and for each type of each queue."""
    return _ask(console_sql.baseline.of_each, "hour", at, "critical", {})


def of_depths(grain: str, at: Iterable[datetime], queues: Iterable[int]) -> dict[tuple[int, int], Baseline]:
    """By Unix second and queue, where enough weeks are known."""
    sql = console_sql.baseline
    query = sql.depth_ranges(weeks=sql.weeks, quartiles=sql.quartiles)
    rows = rows_of(query, {**_weeks(grain, at), "queues": list(queues)})
    return {(at, queue): usual for at, queue, weeks, cuts in rows if (usual := _usual(weeks, cuts))}


def _names_endpoints(subject: BaselineSubject, grain: str, at: Iterable[datetime]) -> bool:
    query = console_sql.baseline.names_endpoints(weeks=console_sql.baseline.weeks)
    return bool(rows_of(query, {**_weeks(grain, at), **subject._asdict()})[0][0])


def _ask(of: Any, grain: str, at: Iterable[datetime], measure: str, values: dict[str, Any]) -> dict[Any, BaselineSet]:
    sql = console_sql.baseline
    query = sql.ranges(weeks=sql.weeks, quartiles=sql.quartiles, of=of, measure=measure)
    rows = rows_of(query, {**_weeks(grain, at), **values})
    return {
        (at, BaselineSubject(*names)): _usuals(*figures)
        for at, *names, figures in ((*row[:4], row[4:]) for row in rows)
    }


def _weeks(grain: str, at: Iterable[datetime]) -> dict[str, Any]:
    """Days are UTC days, whatever the zone, because they were counted so."""
    zone = settings.PGQUEUE["BASELINE_TIME_ZONE"] if grain == "hour" else "UTC"
    return {"grain": grain, "at": list(at), "zone": zone, "weeks": WEEKS}


def _usuals(weeks: int, busy: int, timed: int, cut: int, *quartiles: Any) -> BaselineSet:
    """``cut``: weeks with a 99th percentile; older weeks may lack it."""
    messages, failures, failed, half, nearly_all, all_but_one = quartiles
    return BaselineSet(
        _usual(weeks, messages),
        _usual(weeks, failures),
        _usual(busy, failed),
        _usual(timed, half and map(value, half)),
        _usual(timed, nearly_all and map(value, nearly_all)),
        _usual(cut, all_but_one and map(value, all_but_one)),
    )


def _usual(weeks: int, quartiles: Iterable[float] | None) -> Baseline | None:
    if quartiles is None or weeks < LEAST_WEEKS:
        return None
    lower, median, upper = map(float, quartiles)
    return Baseline(lower, median, upper, weeks)
