"""Failures by fingerprint, and one story per message, from batches' figures: no Spark."""

import math
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

import pytest

from pgqueue_admin.history.rollups import queries
from pgqueue_admin.history.rollups.histogram import value
from tests.history.rollup_factory import failed, rolled_up, told

pytestmark = pytest.mark.usefixtures("console_database")
TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def asked(**names: str) -> queries.TrendQuery:
    return queries.TrendQuery(TEN, TEN + 60 * MINUTE, "minute", **names)


def test_batches_add_up_by_fingerprint_and_the_most_frequent_comes_first() -> None:
    failed(TEN + MINUTE, "a", 2, first_at=TEN + MINUTE, queue="q")
    failed(TEN + 5 * MINUTE, "a", 3, last_at=TEN + 5 * MINUTE, queue="r")
    failed(TEN + 2 * MINUTE, "b", 4, queue="q", exception="Shop.Late", message="")
    failed(TEN + 60 * MINUTE, "a", 100)
    first, second = queries.failures(asked())
    assert (first.fingerprint, first.messages, first.first, first.last) == ("a", 5, TEN + MINUTE, TEN + 5 * MINUTE)
    assert (second.fingerprint, second.messages, second.exception) == ("b", 4, "Shop.Late")
    assert [(each.fingerprint, each.messages) for each in queries.failures(asked(queue="q"))] == [("b", 4), ("a", 2)]


def test_new_is_what_was_never_there_before() -> None:
    failed(TEN, "known")
    failed(TEN, "new")
    failed(TEN - 400 * DAY, "known")
    assert {each.is_new for each in queries.failures(asked())} == {False}, "history begins with the window: who knows"
    rolled_up(TEN - 400 * DAY, grain="day")
    assert {each.fingerprint: each.is_new for each in queries.failures(asked())} == {"known": False, "new": True}


@pytest.mark.parametrize(
    ("parts", "failures", "succeeded"),
    [
        ([{"failed": 2, "last_failed_at": TEN}], 2, None),
        ([{"failed": 2, "last_failed_at": TEN}, {"succeeded": 1, "last_succeeded_at": TEN + DAY}], 2, TEN + DAY),
        ([{"failed": 1, "last_failed_at": TEN - DAY}, {"failed": 1, "last_failed_at": TEN}], 2, None),
        ([{"failed": 1, "last_failed_at": TEN}, {"succeeded": 1, "last_succeeded_at": TEN - DAY}], 1, None),
    ],
    ids=["still dead", "retried and succeeded, batches later", "died again", "died after a success"],
)
def test_a_message_has_one_story(parts: list[dict[str, Any]], failures: int, succeeded: datetime | None) -> None:
    for part in parts:
        told("m", TEN - 2 * DAY, **part)
    (story,) = queries.retry_outcomes(asked())
    assert (story.message_id, story.failed, story.succeeded) == ("m", failures, succeeded)
    assert (story.first, story.last_failed) == (TEN - 2 * DAY, TEN)
    assert (story.of_all, story.of_succeeded) == (1, int(succeeded is not None))


def test_receivers_of_an_event_have_separate_stories() -> None:
    told("m", TEN, endpoint="Billing", failed=2, last_failed_at=TEN)
    told("m", TEN, endpoint="Mail", succeeded=1, last_succeeded_at=TEN + MINUTE)
    told("m", TEN, endpoint="Sales", failed=1, last_failed_at=TEN, succeeded=1, last_succeeded_at=TEN + MINUTE)
    found = queries.retry_outcomes(asked())
    whole = [("Billing", 2, None), ("Sales", 1, TEN + MINUTE)]
    assert [(each.endpoint, each.failed, each.succeeded) for each in found] == whole
    assert {(each.of_all, each.of_succeeded) for each in found} == {(2, 1)}
    assert queries.retried(asked()) == {int((TEN + MINUTE).timestamp()): 2}


def test_all_stories_of_the_window_are_counted_and_the_last_are_told() -> None:
    for number in range(25):
        at = TEN + number * MINUTE
        after = at + MINUTE if number % 5 == 0 else None
        told(f"m{number:02}", at, failed=1, last_failed_at=at, last_succeeded_at=after)
    told("elsewhen", TEN, failed=1, last_failed_at=TEN - DAY)
    found = queries.retry_outcomes(asked())
    assert [story.message_id for story in found] == [f"m{number:02}" for number in range(24, 4, -1)]
    assert {(story.of_all, story.of_succeeded) for story in found} == {(25, 5)}


@pytest.mark.parametrize("messages", [1, 2, 10, 20, 100, 1_000, 3 * 2**31])
def test_percentiles_are_those_of_a_sorted_list_also_at_its_edges(messages: int) -> None:
    """Like percentile_disc: of twenty, the 19th is the 95th percentile; of a hundred, the 99th is the 99th."""
    fast = messages - math.ceil(messages / 100)  # the slowest hundredth, one at least
    middle = math.ceil(messages / 20) - math.ceil(messages / 100)
    numbers = {100: fast - middle, 200: middle, 300: messages - fast}
    rolled_up(TEN, messages, {bucket: number for bucket, number in numbers.items() if number})
    found = queries.timings(asked(), "delivery")[int(TEN.timestamp())].percentiles
    shares = {"p50": 50, "p95": 95, "p99": 99}
    exact = {name: _at(numbers, -(-messages * share // 100)) for name, share in shares.items()}
    assert found._asdict() == {name: value(bucket) for name, bucket in exact.items()}


def _at(numbers: dict[int, int], rank: int) -> int:
    """The bucket of the value at that rank, starting at 1."""
    upto = accumulate(numbers.values())
    return next(bucket for bucket, last in zip(numbers, upto, strict=True) if last >= rank)


@pytest.mark.parametrize("result", ["failed", "rejected", "lock_expired"])
def test_every_result_but_success_counts_as_failed(result: str) -> None:
    """Results of the lease queue too, and of a later version."""
    rolled_up(TEN, 3, result=result, endpoint="Sales")
    rolled_up(TEN, 1, endpoint="Sales")
    (counts,) = queries.counts(asked()).values()
    assert (counts.succeeded, counts.failed, counts.share_failed) == (1, 3, 0.75)
