"""Trends where history is not read to the window's end: unread is not zero, and the current step is partial."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import DepthBucket, HistorySource, Queue, Sample, database_clock
from tests.console.pages import Page, drawn
from tests.history.rollup_factory import rolled_up, told

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)
TEN_MINUTES = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T10:10:00Z", "m": "delivery"}
Read = Callable[[datetime | None], None]


@pytest.fixture
def page(as_viewer: Client) -> Page:
    return lambda **asked: as_viewer.get("/trends/", {**TEN_MINUTES, **asked}).content.decode()


@pytest.fixture
def read_to(console_database: str) -> Read:
    """Mark the archive as read to now and an audit queue as read to ``watermark``."""

    def read(watermark: datetime | None) -> None:
        HistorySource.objects.update_or_create(table="archive", defaults={"watermark": database_clock.now()})
        HistorySource.objects.filter(table="audit").update(watermark=watermark)

    for minute in (2, 5, 7):
        rolled_up(TEN + minute * MINUTE, 40 + minute, {bucket(30): 40 + minute})
        rolled_up(TEN + minute * MINUTE, 1, result="failed")
        told(f"m-{minute}", TEN, succeeded=1, last_succeeded_at=TEN + minute * MINUTE)
    return read


def flat(text: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def test_unread_steps_are_blank_and_not_zero(page: Page, read_to: Read) -> None:
    """Even if one of two tables is read further: failures without successes would give a wrong share."""
    read_to(TEN + 5.5 * MINUTE)
    text = page(table="steps")
    data = drawn(text)
    assert data["succeeded"] == [0, 0, 42, 0, 0, 45, None, None, None, None]
    assert data["failed"] == [0, 0, 1, 0, 0, 1, None, None, None, None]
    assert data["retried"] == [0, 0, 1, 0, 0, 1, None, None, None, None]
    for line in ("share", "p50", "p95", "p99"):
        assert data[line][6:] == [None] * 4
    assert (data["unread_from"], data["so_far_from"]) == tuple(
        int((TEN + minute * MINUTE).timestamp()) for minute in (6, 5)
    )
    assert "87 succeeded and 2 failed" in text
    assert "From 14 Nov 2026 10:06 UTC on not every table is read yet: left blank." in text
    assert "on not every table is read yet: left blank, which is not none" in flat(text)
    assert "and later: not read yet" in text
    assert ">47</span></a>" not in text
    read_to(TEN + 8 * MINUTE)
    assert ">47</span></a>" in page(table="steps")


def test_a_file_says_which_steps_are_not_read_yet(page: Page, read_to: Read) -> None:
    read_to(TEN + 5.5 * MINUTE)
    rows = [row.split(",") for row in page(format="steps").splitlines()]
    assert [(row[0][11:16], row[1], row[2], row[-1]) for row in rows] == [
        ("", "succeeded", "failed", "known"),
        ("10:02", "42", "1", "whole"),
        ("10:05", "45", "1", "so far"),
        *[(f"10:0{minute}", "", "", "not read yet") for minute in (6, 7, 8, 9)],
    ]
    assert {len(row) for row in rows} == {len(rows[0])}
    cells = [row.split(",") for row in page(format="heat").splitlines()[1:]]
    assert [(row[0][11:16], row[4], row[5]) for row in cells] == [
        ("10:02", "42", "whole"),
        ("10:05", "45", "so far"),
        *[(f"10:0{minute}", "", "not read yet") for minute in (6, 7, 8, 9)],
    ]


def test_a_step_that_goes_on_is_marked(page: Page, read_to: Read) -> None:
    read_to(TEN + 5.5 * MINUTE)
    for table in ("steps", "heat"):
        (row,) = re.findall(r"<tr>(?:(?!</tr>).)*so far.*?</tr>", page(table=table), re.DOTALL)
        assert "45" in row
    read_to(TEN + 8 * MINUTE)
    assert "so far" not in page(table="steps")


def test_while_a_table_is_read_for_the_first_time_nothing_is_none(page: Page, read_to: Read) -> None:
    read_to(None)
    text = page(table="steps")
    data = drawn(text)
    assert data["succeeded"] == [None, None, 42, None, None, 45, None, 47, None, None]
    assert (data["so_far_from"], data["unread_from"]) == (data["at"][0], None)
    assert text.count(">so far<") == 3
    assert "A table is being read for the first time: every figure is what is known so far." in text


def test_a_week_before_is_compared_with_where_it_is_whole(page: Page, read_to: Read) -> None:
    for minute in (2, 5):
        rolled_up(TEN - WEEK + minute * MINUTE, 9, {bucket(30): 9})
    read_to(TEN - WEEK + 5.5 * MINUTE)
    before = drawn(page())
    assert before["before"] == [None, None, 9, *[None] * 7]
    assert [each is not None for each in before["p95_before"]] == [False, False, True, *[False] * 7]


def test_the_minute_that_is_not_over_is_no_whole_depth(as_viewer: Client, console_database: str) -> None:
    queue = Queue.objects.create(schema="public", table="Sales", kind="input")
    now = database_clock.now()
    DepthBucket.objects.create(grain="minute", at=_minute(now) - 5 * MINUTE, queue=0, low=1, median=4, high=9)
    Sample.objects.create(queue=queue, at=now, depth=7)
    asked = {"since": (now - 10 * MINUTE).isoformat(), "until": (now + 3 * MINUTE).isoformat(), "table": "depth"}
    text = as_viewer.get("/trends/", asked).content.decode()
    assert drawn(text)["depth_so_far_from"] in {int((_minute(now) + each * MINUTE).timestamp()) for each in (0, 1)}
    rows = as_viewer.get("/trends/", {**asked, "format": "depth"}).content.decode().splitlines()
    assert rows[0].endswith(",known")
    assert rows[1].endswith(",whole")


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)
