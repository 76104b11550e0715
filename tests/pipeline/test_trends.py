"""Failures by fingerprint, and one story a message, from what batches left: no Spark."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pgqueue_admin.pipeline.figures import trends
from tests.pipeline.counted import failed, rolled_up, told

pytestmark = pytest.mark.usefixtures("console_database")
TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def asked(**names: str) -> trends.Asked:
    return trends.Asked(TEN, TEN + 60 * MINUTE, "minute", **names)


def test_batches_add_up_by_fingerprint_and_the_most_frequent_comes_first() -> None:
    failed(TEN + MINUTE, "a", 2, first_at=TEN + MINUTE, queue="q")
    failed(TEN + 5 * MINUTE, "a", 3, last_at=TEN + 5 * MINUTE, queue="r")
    failed(TEN + 2 * MINUTE, "b", 4, queue="q", exception="Shop.Late", message="")
    failed(TEN + 60 * MINUTE, "a", 100)
    first, second = trends.failures(asked())
    assert (first.fingerprint, first.messages, first.first, first.last) == ("a", 5, TEN + MINUTE, TEN + 5 * MINUTE)
    assert (second.fingerprint, second.messages, second.exception) == ("b", 4, "Shop.Late")
    assert [(each.fingerprint, each.messages) for each in trends.failures(asked(queue="q"))] == [("b", 4), ("a", 2)]


def test_new_is_what_was_never_there_before() -> None:
    failed(TEN, "known")
    failed(TEN, "new")
    failed(TEN - 400 * DAY, "known")
    assert {each.is_new for each in trends.failures(asked())} == {False}, "history begins with the window: who knows"
    rolled_up(TEN - 400 * DAY, grain="day")
    assert {each.fingerprint: each.is_new for each in trends.failures(asked())} == {"known": False, "new": True}


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
    (story,) = trends.stories(asked())
    assert (story.message_id, story.failed, story.succeeded) == ("m", failures, succeeded)
    assert (story.first, story.last_failed) == (TEN - 2 * DAY, TEN)


def test_all_stories_of_the_window_are_counted_and_the_last_are_told() -> None:
    for number in range(25):
        at = TEN + number * MINUTE
        after = at + MINUTE if number % 5 == 0 else None
        told(f"m{number:02}", at, failed=1, last_failed_at=at, last_succeeded_at=after)
    told("elsewhen", TEN, failed=1, last_failed_at=TEN - DAY)
    found = trends.stories(asked())
    assert [story.message_id for story in found] == [f"m{number:02}" for number in range(24, 4, -1)]
    assert {(story.of_all, story.of_succeeded) for story in found} == {(25, 5)}
