"""Rates and age beside depth, from samples alone: approximate, blank where unknown, partial in the current step."""

import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from pgqueue_admin.models import DepthBucket, HistorySource, Queue, Sample, database_clock
from tests.console.pages import matched
from tests.history.rollup_factory import rolled_up

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SALES = '"public"."Sales"'

Page = Callable[..., str]


@pytest.fixture
def page(as_viewer: Client, console_database: str) -> Page:
    def ask(**asked: str) -> str:
        asked = {"w": "24h", "at": "2026-11-14T12:30:00Z", "queue": SALES, **asked}
        return unescape(as_viewer.get("/trends/", asked).content.decode()).replace("\u00a0", " ")

    return ask


@pytest.fixture
def sales(console_database: str) -> Queue:
    return Queue.objects.create(schema="public", table="Sales", kind="input")


def folded(queue: Queue, hour: int, **known: Any) -> None:
    DepthBucket.objects.create(grain="hour", at=TEN + hour * HOUR, queue=queue.pk, low=0, median=2, high=8, **known)


@pytest.fixture
def hours(sales: Queue) -> None:
    """An hour without rates, as in old data; a complete hour; a quiet hour, half of it seen, with a long wait."""
    folded(sales, 0)
    folded(
        sales, 1, in_per_second=2.5, out_per_second=2.0, rated_minutes=60, oldest_seconds=4.25, oldest_at_least=False
    )
    folded(sales, 2, in_per_second=0.0, out_per_second=0.5, rated_minutes=30, oldest_seconds=600, oldest_at_least=True)


def drawn(text: str) -> dict[str, list[Any]]:
    data = json.loads(matched(r'data-trends="(\{.*?\})"', text))
    return {name: line[-3:] for name, line in data.items() if isinstance(line, list)}


def test_unknown_rates_are_blank_and_zero_rates_are_zero(page: Page, hours: None) -> None:
    data = drawn(page())
    assert (data["in"], data["out"]) == ([None, 2.5, 0.0], [None, 2.0, 0.5])
    assert (data["came_in"], data["went_out"]) == ([None, 9000, 0], [None, 7200, 900])  # for the half hour seen
    assert (data["oldest"], data["oldest_at_least"]) == ([None, 4.25, 600], [None, False, True])


def test_the_same_as_words_and_as_rows(page: Page, hours: None) -> None:
    text = page(table="depth")
    assert "≈ 9,000 messages came in, ≈ 8,100 went out. Known for 2 of 24 hours only." in text
    assert "The oldest ready message waited at least 10 min, in the hour from 14 Nov 2026 12:00 UTC." in text
    rows = text.partition("<tbody>")[2].replace("</span> <small>", " ").split("</tr>")
    for told, cells in zip(rows, _CELLS, strict=False):
        for cell in cells:
            assert f">{cell}<" in told


_CELLS = [
    ["≈ 0", "≈ 0", "≈ 900", "at least 10 min"],
    ["≈ 2.5 /s", "≈ 2 /s", "≈ 9,000", "≈ 7,200", "≈ 4.25 s"],
    ["–"],
]


def test_sentences_tell_times_as_the_rest_of_the_page_does(page: Page, hours: None, as_viewer: Client) -> None:
    """In the reader's zone, which is named: no browser converts them."""
    as_viewer.cookies["zone"] = "Europe/Vienna"
    rolled_up(TEN, 3, grain="hour", critical_buckets=[300], critical_counts=[3])
    HistorySource.objects.update(watermark=TEN + 1.5 * HOUR)
    text = page(queue="")
    assert "At most 8 waited, in the hour from 14 Nov 2026 11:00 CET." in page()
    assert "waited at least 10 min, in the hour from 14 Nov 2026 13:00 CET." in page()
    assert "From 14 Nov 2026 13:00 CET on not every table is read yet: left blank." in text
    assert "last from 14 Nov 2026 11:00 CET on." in text
    assert not re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", text)


def test_a_depth_that_lacks_queues_says_so(page: Page, hours: None) -> None:
    lacking = "2 of 3 hours are without up to 2 queues that could not be read: more may have lain there."
    assert "could not be read" not in page(table="depth")
    DepthBucket.objects.filter(at=TEN).update(unread=1)
    DepthBucket.objects.filter(at=TEN + HOUR).update(unread=2)
    text = page(table="depth")
    assert text.count(lacking) == 2, "for eyes and ears"
    assert ", without 1 queue that could not be read" in text
    assert drawn(text)["unread"] == [1, 2, 0]


def test_the_same_as_csv(page: Page, hours: None) -> None:
    DepthBucket.objects.filter(at=TEN).update(unread=3)
    rows = list(csv.DictReader(page(format="depth").splitlines()))
    names = (
        "in_per_second",
        "out_per_second",
        "came_in",
        "went_out",
        "oldest_seconds",
        "oldest_at_least",
        "queues_unread",
        "known",
    )
    assert [[row[name] for name in names] for row in rows] == [
        ["", "", "", "", "", "", "3", "whole"],
        ["2.5", "2.0", "9000", "7200", "4.2", "False", "", "whole"],
        ["0.0", "0.5", "0", "900", "600.0", "True", "", "whole"],
    ]


def test_depths_say_how_they_are_known(page: Page, sales: Queue) -> None:
    """Sentence, label beside the chart, table and CSV alike."""
    for hour, how in enumerate(("counted", "capped", None)):
        folded(sales, hour, how=how)
    DepthBucket.objects.filter(how="capped").update(high=10_000)
    assert "At most 10,000+ waited" in page()
    assert drawn(page())["how"] == ["", ", at least", ""]
    assert re.search(r'data-kind="capped">10,000\+<', page(table="depth"))
    assert [row["depth_known"] for row in csv.DictReader(page(format="depth").splitlines())] == [
        "counted",
        "capped",
        "",
    ]


def test_without_rates_and_ages_it_is_said_and_nothing_empty_is_drawn(page: Page, sales: Queue) -> None:
    folded(sales, 1)
    text = page()
    assert 'data-plot="depth"' in text
    assert 'data-plot="rate"' not in text
    assert 'data-plot="age"' not in text
    assert "How many messages came in and went out is not known." in text
    assert "How long a message waited is not known" in text


def test_a_minute_that_goes_on_has_what_came_so_far(page: Page, sales: Queue) -> None:
    """A rate known for ten seconds does not give the messages of a whole minute."""
    now = database_clock.now()
    Sample.objects.create(queue=sales, at=now, depth=1, ready=1, in_per_second=100, oldest_at=now - HOUR)
    (row,) = csv.DictReader(page(w="1h", at="", format="depth").splitlines())
    most = (database_clock.now() - now.replace(second=0, microsecond=0)).total_seconds() * 100 + 1
    assert int(row["came_in"]) <= min(6000, most)
    assert (row["in_per_second"], row["out_per_second"], row["went_out"]) == ("100.0", "", "")
    assert float(row["oldest_seconds"]) == pytest.approx(3600, abs=0.1)
    assert "messages came in, how many went out is not known." in page(w="1h", at="")
