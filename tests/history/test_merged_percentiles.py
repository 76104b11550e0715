"""A week's percentiles from the counts of its hours: within one per cent of sorting all raw values."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.rollups.histogram import RELATIVE_ERROR, bucket, percentile
from pgqueue_admin.models import Rollup
from pgqueue_admin.models.time_grains import floor
from tests.history.rollup_factory import batch, rolled_up

NOON, HOUR, HOURS = datetime(2026, 11, 16, 12, tzinfo=UTC), timedelta(hours=1), 7 * 24
SHARES = [0.5, 0.95, 0.99, 0.999]
Measured = dict[int, list[int]]  # milliseconds by hour


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 5_000), st.floats(0, 12), st.floats(0, 4))
@example(seed=1, messages=1, middle=0, spread=0)
@example(seed=1, messages=1_001, middle=3, spread=4)
def test_percentiles_of_a_week_match_all_measured_spans(
    database: Any, seed: int, messages: int, middle: float, spread: float
) -> None:
    measured, one = by_hour(random.Random(seed), messages, middle, spread), batch()
    for grain in ("hour", "day"):  # as batches store them: Trends reads whole days of a week as days
        for at, spans in in_steps(measured, grain).items():
            counts = Counter(map(bucket, spans))
            rolled_up(at, len(spans), counts, grain=grain, type="Bill", batch=one)
    everything = [span for spans in measured.values() for span in spans]
    exact = [pytest.approx(each, rel=RELATIVE_ERROR + 1e-9) for each in sorted_out(database, everything)]
    try:
        assert [percentile(merged(), share) for share in SHARES] == exact
        (slow,) = queries.slowest(WEEK, WEEK.until, timedelta(days=7), "delivery")
        assert [slow.p50, slow.p95] == exact[:2]
    finally:
        Rollup.objects.all().delete()


WEEK = queries.TrendQuery(NOON, NOON + HOURS * HOUR, "hour")


def by_hour(chance: random.Random, messages: int, middle: float, spread: float) -> Measured:
    """Like queue times: many short ones, a few very long, each hour different."""
    found: Measured = {}
    for _ in range(messages):
        hour = chance.randrange(HOURS)
        found.setdefault(hour, []).append(int(chance.lognormvariate(middle + hour / HOURS, spread)))
    return found


def in_steps(measured: Measured, grain: str) -> dict[datetime, list[int]]:
    found: dict[datetime, list[int]] = {}
    for hour, spans in measured.items():
        found.setdefault(floor(NOON + hour * HOUR, grain), []).extend(spans)
    return found


def sorted_out(database: Any, spans: list[int]) -> list[int]:
    query = (
        "select percentile_disc(%(shares)s::float8[]) within group (order by span) from unnest(%(spans)s::int8[]) span"
    )
    found: list[int] = database.value(query, {"shares": SHARES, "spans": spans})
    return found


def merged() -> Counter[int]:
    counted: Counter[int] = Counter()
    for row in Rollup.objects.filter(grain="hour"):
        counted.update(dict(zip(row.delivery_buckets, row.delivery_counts, strict=True)))
    return counted
