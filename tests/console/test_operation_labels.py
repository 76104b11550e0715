"""The reason of an outcome: its time is stored in UTC and shown in the user's zone."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from pgqueue_admin.console.operations.labels import in_zone

WHEN = datetime(2026, 11, 26, 10, 0, 0, 123, tzinfo=UTC)


def test_the_time_of_who_was_quicker_is_said_in_the_zone_of_whoever_looks() -> None:
    with timezone.override("Asia/Kathmandu"):
        said = in_zone("It was retried by ops at 2026-11-26 10:00:00 UTC and succeeded.", WHEN)
    assert said == "It was retried by ops at 2026-11-26 15:45:00 +0545 and succeeded."


@pytest.mark.parametrize("when", [None, WHEN])
def test_foreign_text_with_a_time_is_unchanged(when: datetime | None) -> None:
    """A trigger's message may contain what only looks like a time."""
    for said in ("Sales did not take it: shut at 2026-99-01 10:00:00 UTC", "shut at 2026-11-25 10:00:00 UTC"):
        assert in_zone(said, when) == said
