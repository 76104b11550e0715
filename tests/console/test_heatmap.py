"""The heat map of Trends counts every message in exactly one cell, however steps and buckets are folded."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from pgqueue_admin.history.rollups import latency_bands
from pgqueue_admin.history.rollups.histogram import GAMMA, bucket
from tests.console.pages import Page, matched
from tests.history.files import message, write
from tests.history.rollup_factory import rolled_up

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SIX_HOURS = {"w": "6h", "at": "2026-11-14T11:59:00Z", "m": "delivery"}  # four minutes per column


def waited(at: datetime, milliseconds: dict[float, int], **names: str) -> None:
    rolled_up(at, sum(milliseconds.values()), {bucket(ms): number for ms, number in milliseconds.items()}, **names)


@pytest.fixture
def page(as_viewer: Client) -> Page:
    return lambda **asked: as_viewer.get("/trends/", {**SIX_HOURS, **asked}).content.decode()


def rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.splitlines()[1:]]


def test_each_message_is_in_one_cell_and_batches_and_minutes_add_up(page: Page) -> None:
    waited(TEN, {0: 1, 3: 2, 150: 5}, queue="q")
    waited(TEN + 3 * MINUTE, {150: 1, 200: 1, 203: 4}, queue="q")
    waited(TEN + 4 * MINUTE, {90_000_000: 1}, queue="q")
    waited(TEN, {3: 100}, queue="other")
    first, second = ["2026-11-14T10:00:00Z", "2026-11-14T10:04:00Z"], ["2026-11-14T10:04:00Z", "2026-11-14T10:08:00Z"]
    assert rows(page(format="heat", queue="q")) == [
        [*first, "0", "1", "1", "whole"],
        [*first, "2", "5", "2", "whole"],
        [*first, "100", "200", "7", "whole"],
        [*first, "200", "500", "4", "whole"],
        [*second, "86400000", "", "1", "whole"],
    ]


def test_the_drawing_its_table_and_its_sentence_say_the_same(page: Page) -> None:
    waited(TEN, {3: 2, 30: 9})
    waited(TEN + 8 * MINUTE, {3: 1})
    rolled_up(TEN + MINUTE, 3, result="failed")
    text = page(table="heat")
    told = json.loads(unescape(matched(r'data-heat="([^"]*)"', text)))
    at = told["at"].index(int(TEN.timestamp()))
    assert (told["words"][0], told["numbers"][at]) == ("2\u00a0ms to 5\u00a0ms", [2, 0, 0, 9])
    assert "12 messages timed. Most, 9, took 20\u00a0ms to 50\u00a0ms" in text
    numbers = re.findall(r'<td class="num">(?:<a href="[^"]*">)?(\d+)<', text)
    assert numbers[-8:] == ["1", "0", "0", "0", "2", "0", "0", "9"]
    assert "until%3A2026-11-14T10%3A04%3A00Z" in text, "the column's failures, not the step's"
    assert re.findall(r'fill-opacity="([^"]*)" d="([^"]*)"', text) == [
        ("0.38", "M248 3h4v1h-4z"),
        ("0.56", "M240 3h4v1h-4z"),
        ("1", "M240 0h4v1h-4z"),
    ]


@pytest.mark.parametrize(
    ("length", "said"),
    [("1h", "10:46"), ("30d", "7 Nov"), ("90d", "23 Oct"), ("2y", "May 2026")],
)
def test_axis_labels_are_distinct_in_every_window(page: Page, length: str, said: str) -> None:
    """Over two years, day and month alone are ambiguous."""
    waited(TEN + MINUTE, {3: 1})
    rolled_up(TEN.replace(hour=0), 1, {bucket(3): 1}, grain="day")
    rolled_up(TEN, 1, {bucket(3): 1}, grain="hour")
    text = page(w=length, at="2026-11-14T11:00:00Z")
    marks = re.findall(r'<text [^>]*text-anchor="[^"]*"[^>]*>([^<]+)</text>', text)
    assert said in marks
    assert len(set(marks)) == 5
    assert ("by the day, as UTC has its days" in " ".join(text.split())) == (length in ("90d", "2y"))


def test_without_any_timing_there_is_no_map(page: Page) -> None:
    rolled_up(TEN, 3)
    text = page()
    assert "data-heat" not in text
    assert "How long they took is unknown." in text
    assert rows(page(format="heat")) == []


def test_a_cell_leads_to_exactly_its_messages(page: Page, history: Path, as_viewer: Client) -> None:
    """Including those at its edges: the stored bucket decides, not the rounded number in the label."""
    edges = [4, 5, 6, 198, 199, 200, 201, 202, 203, 204]
    for ms in edges:
        waited(TEN, {ms: 1}, endpoint="Sales")
    write(history, *(message(ms, TEN, delivery_ms=ms) for ms in edges), message(999, TEN))
    told = json.loads(unescape(matched(r'data-heat="([^"]*)"', page(endpoint="Sales"))))
    cells = dict(zip(told["words"], told["numbers"][told["at"].index(int(TEN.timestamp()))], strict=True))
    assert sum(cells.values()) == len(edges)
    table = page(table="heat", endpoint="Sales")
    for address in re.findall(r'<td class="num"><a href="(/trends/messages/[^"]*)">', table):
        answered = as_viewer.get(unescape(address)).content.decode()
        words = unescape(matched(r"Delivery time: sent until a handler began, (.*?) only, as the heat map", answered))
        assert len(re.findall(r'href="/trends/messages/\d+/', answered)) == cells.pop(words)
    assert not any(cells.values())
    pressed = told["cell"].replace("SINCE", "2026-11-14T10:00:00Z").replace("UNTIL", "2026-11-14T10:04:00Z")
    assert "/trends/messages/4/" in as_viewer.get(pressed.replace("BAND", str(told["first"]))).content.decode()


@pytest.mark.parametrize(
    "wrong", [{"m": "delivery", "band": "99"}, {"m": "x", "band": "1"}, {"m": "delivery", "band": "-1"}]
)
def test_a_cell_that_there_is_not_asks_for_nothing(history: Path, as_viewer: Client, wrong: dict[str, str]) -> None:
    write(history, message(1, TEN))
    asked = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T10:04:00Z", **wrong}
    text = as_viewer.get("/trends/messages/", asked).content.decode()
    assert "/trends/messages/1/" in text
    assert "as the heat map" not in text


def test_whole_milliseconds_of_a_band_are_those_that_its_buckets_count() -> None:
    for band in range(len(latency_bands.ENDS)):
        least, most = latency_bands.whole(band)
        assert most is not None
        assert bucket(most) < latency_bands.STARTS[band] <= bucket(most + 1)
        assert least == (latency_bands.whole(band - 1)[1] or 0) + 1 if band else least == 0
    assert latency_bands.whole(len(latency_bands.ENDS))[1] is None


def test_bands_meet_and_their_words_are_true_within_two_per_cent() -> None:
    for band, end in enumerate(latency_bands.ENDS):
        first_above = GAMMA ** (latency_bands.STARTS[band] - 1)
        assert end <= first_above < end * GAMMA
    assert [latency_bands.words(each) for each in (0, 9, len(latency_bands.ENDS))] == [
        "up to 1\u00a0ms", "500\u00a0ms to 1\u00a0s", "over 1\u00a0d",
    ]  # fmt: skip
