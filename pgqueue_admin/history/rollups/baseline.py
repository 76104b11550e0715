"""The baseline and range of each hour: quartiles of the same hour in the weeks before."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models.raw_sql import console_sql, rows_of

WEEKS = 8  # looked back on
LEAST_WEEKS = 3  # before anything is said
FENCE = 3  # times the distance of the quartiles: beyond that, Tukey calls a value far out
SPAN_MS, DEPTH = 20.0, 20.0  # differences below that are nobody's concern
CHANCE = 4  # times the square root of a count: how far chance alone takes it


class BaselineRange(NamedTuple):
    low: float
    high: float


class Baseline(NamedTuple):
    """Quartiles of so many weeks, each a value that was seen: a quarter of them lay at or below ``lower``."""

    lower: float
    median: float
    upper: float
    weeks: int

    def band(self, least: float) -> BaselineRange:
        """As wide as the weeks differed, at least half of the median and ``least`` to either side; never below 0."""
        far, wide = FENCE * (self.upper - self.lower), max(self.median / 2, least)
        return BaselineRange(
            max(0.0, min(self.lower - far, self.median - wide)), max(self.upper + far, self.median + wide)
        )


class BaselineSet(NamedTuple):
    """Of one kind in one step; None: too few weeks. Spans in milliseconds, ``failed`` is a share of 0 to 1."""

    messages: Baseline | None
    failures: Baseline | None
    failed: Baseline | None  # of the weeks in which anything finished
    half: Baseline | None  # of those in which anything was timed
    nearly_all: Baseline | None
    all_but_one: Baseline | None  # 99 in 100


def of_messages(usual: Baseline) -> BaselineRange:
    """One more is given: where nothing is usual, five are needed."""
    return usual.band(CHANCE * math.sqrt(usual.median + 1))


def of_share(usual: Baseline, messages: int) -> BaselineRange:
    """Of so many messages: one failure more says nothing of one, little of ten, and much of a thousand."""
    band = usual.band(CHANCE * math.sqrt(usual.median * messages + 1) / messages)
    return band._replace(high=min(1.0, band.high))


def of_span(usual: Baseline) -> BaselineRange:
    return usual.band(SPAN_MS)


def of_depth(usual: Baseline) -> BaselineRange:
    return usual.band(DEPTH)


# What is usual at an hour or day: read from what was seen in the same step of the weeks before.
class BaselineSubject(NamedTuple):
    """An endpoint, or a queue whose endpoint nobody knows, and a type; empty means all."""

    queue: str = ""
    endpoint: str = ""
    type: str = ""


def of_one(subject: BaselineSubject, grain: str, at: Sequence[datetime], measure: str) -> dict[int, BaselineSet]:
    """By the second (Unix) at which a step begins; steps before which the subject was never seen are absent.

    Nothing of a queue where the endpoint of some of its messages is known: their usual is the endpoint's.
    """
    if subject.queue and _names_endpoints(subject, grain, at):
        return {}
    found = _ask(console_sql.baseline.of_one, grain, at, measure, subject._asdict())
    return {at: usuals for (at, _), usuals in found.items()}


def of_each(at: Iterable[datetime]) -> dict[tuple[int, BaselineSubject], BaselineSet]:
    """Of these hours, each queue with all of its types and each type of each queue: critical time."""
    return _ask(console_sql.baseline.of_each, "hour", at, "critical", {})


def of_depths(grain: str, at: Iterable[datetime], queues: Iterable[int]) -> dict[tuple[int, int], Baseline]:
    """By second and queue, where enough weeks are known."""
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
    """Days are those of UTC, whatever the zone: so they were counted."""
    zone = settings.PGQUEUE["BASELINE_TIME_ZONE"] if grain == "hour" else "UTC"
    return {"grain": grain, "at": list(at), "zone": zone, "weeks": WEEKS}


def _usuals(weeks: int, busy: int, timed: int, cut: int, *quartiles: Any) -> BaselineSet:
    """``cut``: weeks of which 99 in 100 is known; versions before did not ask."""
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
