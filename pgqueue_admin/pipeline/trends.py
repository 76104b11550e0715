"""Figures of history for charts: read from the rollups, with no Spark."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import connections

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline.histogram import value

STEPS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
MEASURES = ("critical", "processing", "delivery")


@dataclass(frozen=True, slots=True)
class Asked:
    """A window and what is meant in it. Empty names mean all."""

    since: datetime
    until: datetime
    grain: str
    queue: str = ""
    endpoint: str = ""
    type: str = ""

    def params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Counts(NamedTuple):
    succeeded: int
    failed: int
    skewed: int


class Percentiles(NamedTuple):
    """Milliseconds, within one per cent."""

    p50: float
    p95: float
    p99: float


class Kind(NamedTuple):
    name: str
    messages: int


class Failure(NamedTuple):
    exception: str
    first: datetime
    last: datetime
    messages: int


def counts(asked: Asked) -> dict[int, Counts]:
    """By the second (Unix) at which a step begins; steps in which nothing finished are absent."""
    rows = _ask(postgresql().trends.counts(asked=postgresql().trends.asked), asked)
    return {at: Counts(*figures) for at, *figures in rows}


def percentiles(asked: Asked, measure: str) -> dict[int, Percentiles]:
    """Of one of MEASURES, by step; steps in which nothing was measured are absent."""
    query = postgresql().trends.percentiles(asked=postgresql().trends.asked, buckets=measure, numbers=f"{measure}_n")
    return {at: Percentiles(*map(value, buckets)) for at, *buckets in _ask(query, asked)}


def kinds(asked: Asked, name: str) -> list[Kind]:
    """The queues, endpoints or types (``name``: queue, endpoint, type) that finished anything, the busiest first."""
    return [Kind(*row) for row in _ask(postgresql().trends.kinds(name=name), asked)]


def failures(asked: Asked) -> list[Failure]:
    return [Failure(*row) for row in _ask(postgresql().trends.failures(asked=postgresql().trends.asked), asked)]


def _ask(query: Any, asked: Asked) -> list[Any]:
    with connections["default"].cursor() as cursor:
        cursor.execute(query, asked.params())
        return cursor.fetchall()
