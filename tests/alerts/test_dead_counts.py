"""Dead messages are counted by queue and cause: seldom if counting is slow, by name for a limited number of causes."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction

from pgqueue_admin.alerts import dead_message_cursor
from pgqueue_admin.alerts.dead_message_cursor import DeadMessageCursor
from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.models import Alert
from pgqueue_admin.models.queue_database import queue_database
from tests.alerts.conftest import BILLING
from tests.alerts.reading import Die, died, read


class Slow:
    """The alerter's statements, where counting dead messages times out."""

    def __init__(self) -> None:
        self.counted = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(queue_database().dialect.alerts, name)

    def lying(self, **parts: Any) -> Any:
        self.counted += 1
        raise TimedOut("canceling statement due to statement timeout")


def test_a_count_that_is_too_slow_rests_as_one_that_is_done(
    console_database: str, die: Die, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the number of dead messages is unknown, and new deaths are still reported."""
    monkeypatch.setattr(dead_message_cursor, "SHARE", 10**12)  # the pause is longer than this test
    reader, slow = DeadMessageCursor(), Slow()
    seen: Any = SimpleNamespace(read_session=queue_database().read_session, dialect=SimpleNamespace(alerts=slow))
    for deaths in ([], [2], [1]):
        with transaction.atomic(), dead_message_cursor.cursor() as cursor:
            reading = reader.read(seen, cursor)
        assert ([each.count for each in reading.deaths], reading.lying) == (deaths, None)
        assert "too slow" in reading.error
        die(2 if not deaths else 1)
    assert slow.counted == 1
    reader._count_at = 0.0
    with transaction.atomic(), dead_message_cursor.cursor() as cursor:
        reading = reader.read(queue_database(), cursor)
    assert [group.count for group in reading.lying or []] == [4]


def test_dead_without_a_cause_are_counted_by_result(
    console_database: str, die: Die, connect: Callable[[str], Connection]
) -> None:
    """NULL and "" are the same; a cause named like a result joins that result."""
    die(3, "failed")
    connection = connect(console_database)
    for exception in (None, ""):
        store.archive_failed(connection, DeadMessage(queue=BILLING, exception_type=exception))
    store.archive_failed(connection, DeadMessage(queue=BILLING, exception_type="Shop.Refused"))
    lying = {(group.queue, group.cause): group.count for group in read().lying or []}
    assert lying == {(BILLING, "failed"): 5, (BILLING, "Shop.Refused"): 1}


def test_between_two_counts_the_dead_are_added_up(console_database: str, die: Die) -> None:
    """A large archive is counted seldom; new deaths are added meanwhile."""
    reader = DeadMessageCursor()

    def lying() -> dict[str, int]:
        with transaction.atomic(), dead_message_cursor.cursor() as cursor:
            return {group.cause: group.count for group in reader.read(queue_database(), cursor).lying or []}

    die(1, "Shop.Refused")
    assert lying() == {"Shop.Refused": 1}
    reader._count_at = float("inf")  # as after a slow count
    die(2, "Shop.Refused")
    die(3, "Shop.Timeout")
    assert lying() == {"Shop.Refused": 3, "Shop.Timeout": 3}
    assert lying() == {"Shop.Refused": 3, "Shop.Timeout": 3}
    reader._count_at = 0
    assert lying() == {"Shop.Refused": 3, "Shop.Timeout": 3}


def test_deaths_are_told_even_if_the_dead_cannot_be_counted(
    console_database: str, die: Die, connect: Callable[[str], Connection]
) -> None:
    read()
    die(2)
    connect(console_database).run("alter table messages.message_archive rename column state to former_state")
    reading = read()
    assert died(reading) == {(BILLING, "Shop.Refused"): 2}
    assert reading.lying is None
    assert reading.error


def test_names_of_any_length_find_room(console_database: str, die: Die) -> None:
    read()
    die(1, "E" * 1_500, queue='"public"."' + '""' * 400 + '"')
    (deaths,) = read().deaths
    assert (len(deaths.queue), len(deaths.cause)) == (400, 400)


def test_of_thousands_of_causes_a_queue_has_so_many_by_name(console_database: str, die: Die) -> None:
    """Anybody can send thousands of exception types: neither warnings nor memory may grow with them."""
    read()
    die(5, "Shop.Often")
    for number in range(60):
        die(1, f"Evil.Exception{number}", message_type=f"Shop.Type{number % 5}")
    die(1, queue='"public"."Sales"')
    reading = read()
    for found in (reading.deaths, reading.lying or []):
        billing = {group.cause: group for group in found if group.queue == BILLING}
        assert len(billing) == dead_message_cursor.MOST_CAUSES + 1
        assert billing["Shop.Often"].count == 5
        assert (billing[""].count, billing[""].causes) == (41, 41)
        assert len(found) == len(billing) + 1
    assert [len(died.types) for died in reading.deaths if died.cause == ""] == [3]


def test_a_cause_that_is_warned_of_keeps_its_name(console_database: str, die: Die) -> None:
    read()
    for number in range(dead_message_cursor.MOST_CAUSES):
        Alert.objects.create(
            kind="dead_message", subject=BILLING, queue=BILLING, cause=f"Shop.Known{number}", severity="critical",
            opened_at=datetime.now(UTC), last_seen_at=datetime.now(UTC),
        )  # fmt: skip
    die(1, "Shop.Known7")
    die(9, "Shop.New")
    reading = read()
    expected = {(BILLING, "Shop.Known7"): 1, (BILLING, ""): 9}
    assert died(reading) == expected
    assert {(each.queue, each.cause): each.count for each in reading.lying or []} == expected
