"""Tables of Trends beside its charts: the share of failures, and the slowest types against previous weeks."""

import csv
import re
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO

import pytest
from django.test import Client

from pgqueue_admin.history.rollups.histogram import bucket
from pgqueue_admin.models import HistorySource
from tests.console.pages import Page, drawn, matched
from tests.history.rollup_factory import rolled_up

TEN = datetime(2026, 11, 14, 10, tzinfo=UTC)
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)
TEN_MINUTES = {"since": "2026-11-14T10:00:00Z", "until": "2026-11-14T10:10:00Z", "m": "delivery"}


@pytest.fixture
def page(as_viewer: Client, console_database: str) -> Page:
    return lambda **asked: as_viewer.get("/trends/", {**TEN_MINUTES, **asked}).content.decode()


def rows(text: str, name: str) -> list[str]:
    """The rows of the table as text."""
    table = matched(rf'<div id="table-{name}">(.*?)</table>', text, re.DOTALL)
    found = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", row)).replace("\u00a0", " ").split()) for row in found]


def timed(at: datetime, type_: str, milliseconds: float, messages: int = 20, **names: str) -> None:
    rolled_up(at, messages, {bucket(milliseconds): messages}, type=type_, **names)


def test_the_share_that_failed_has_a_table_and_a_file(page: Page) -> None:
    rolled_up(TEN + 2 * MINUTE, 30)
    rolled_up(TEN + 2 * MINUTE, 10, result="failed")
    rolled_up(TEN - WEEK + 2 * MINUTE, 9)
    rolled_up(TEN - WEEK + 2 * MINUTE, 1, result="failed")
    rolled_up(TEN + 5 * MINUTE, 8)
    HistorySource.objects.update(watermark=TEN + 5.5 * MINUTE)
    unread, going_on, whole = rows(page(table="share"), "share")
    assert unread.endswith("and later: not read yet")
    assert going_on.endswith("so far 8 0 0 % – –")
    assert whole.endswith("40 10 25 % 10 % –")
    file = page(format="share").splitlines()
    assert file[:3] == [
        "at,finished,failed,per_cent_failed,per_cent_failed_week_before,"
        "usual_per_cent_failed_low,usual_per_cent_failed_high,known",
        "2026-11-14T10:02:00Z,40,10,25.0,10.0,,,whole",
        "2026-11-14T10:05:00Z,8,0,0.0,,,,so far",
    ]
    assert file[3:] == [f"2026-11-14T10:0{minute}:00Z,,,,,,,not read yet" for minute in (6, 7, 8, 9)]


def test_tiny_share_of_failures_is_not_shown_as_zero(page: Page) -> None:
    """Above the chart, under its cursor and in its table; the file has the exact figure."""
    rolled_up(TEN + 2 * MINUTE, 3 * 2**31)
    rolled_up(TEN + 2 * MINUTE, 1, result="failed")
    text = page(table="share")
    assert rows(text, "share")[0].endswith("1 < 0.01 % – –")
    assert 'Share failed</dt><dd class="v">&lt;\u00a00.01\u00a0%' in text
    assert drawn(text)["share"][2] == 0.005, "what stands for less than 0.01"
    assert page(format="share").splitlines()[1].startswith("2026-11-14T10:02:00Z,6442450945,1,1.5522e-08,")


def test_the_slowest_types_come_first_each_with_its_change(page: Page) -> None:
    for type_, now, then in (("Shop.Slow", 900, 300), ("Shop.Same", 500, 500), ("Shop.Better", 80, 100)):
        timed(TEN + MINUTE, type_, now)
        timed(TEN - WEEK + MINUTE, type_, then)
    timed(TEN + MINUTE, "Shop.New", 50)
    timed(TEN - WEEK + MINUTE, "Shop.Gone", 5_000)
    timed(TEN - 2 * WEEK + MINUTE, "Shop.Same", 9_000)
    rolled_up(TEN + MINUTE, 3, type="Shop.Untimed")
    text = page(table="types")
    found = [re.sub(r"^Shop\. ", "Shop.", row) for row in rows(text, "types")]
    assert [row.split()[0] for row in found] == ["Shop.Slow", "Shop.Same", "Shop.Better", "Shop.New"]
    assert [
        found[place].endswith(end) for place, end in enumerate(("3.0 times as long", "as then", "−20 %", "none then"))
    ] == [True] * 4
    assert "against 1 week before" in text
    assert "type=Shop.Slow" in text
    file = page(format="types").splitlines()
    assert file[0] == "type,timed,p50_ms,p95_ms,p95_ms_before,weeks_before"
    assert re.fullmatch(r"Shop\.Slow,20,(89|90)\d\.\d,(89|90)\d\.\d,(29|30)\d\.\d,1", file[1])
    assert file[4].endswith(",,1")


@pytest.mark.parametrize(
    ("now", "then", "change"),
    [
        (10, 5_000, "< −99 %"), (1, 1_000_000, "< −99 %"), (60, 5_000, "−99 %"), (1_999, 1_000, "2.0 times as long"),
        (0, 5, "< −80 %"), (0, 1_000_000, "< −99 %"), (0, 1, "as then"), (0, 0, "–"), (5, 0, "–"),
    ],
)  # fmt: skip
def test_no_change_is_all_of_it(page: Page, now: float, then: float, change: str) -> None:
    """Neither a change of nearly everything, nor a time below the clock's resolution of 1 ms."""
    timed(TEN + MINUTE, "Shop.Bill", now)
    timed(TEN - WEEK + MINUTE, "Shop.Bill", then)
    (row,) = rows(page(table="types"), "types")
    assert row.endswith(f" {change}")


def test_no_name_is_a_formula_of_a_spreadsheet(page: Page) -> None:
    """Senders write the names. Markup and commas stay unchanged."""
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", 'Shop.<b>"a", b</b>', "Shop." + "x" * 395]
    for place, name in enumerate(names):
        timed(TEN + MINUTE, name, 9_000 - 1_000 * place)
    _, *found = csv.reader(StringIO(page(format="types"), newline=""))
    assert [row[0] for row in found] == [*[f"'{name}" for name in names[:5]], *names[5:]]
    assert "<b>" not in matched(r'<div id="table-types">(.*?)</table>', page(table="types"), re.DOTALL)


def test_slowest_types_load_as_a_part_after_the_charts(page: Page, as_viewer: Client) -> None:
    """As with a queue's head and tail: a part with its own address and the page's window."""
    timed(TEN + MINUTE, "Shop.Slow", 900, endpoint="Sales")
    timed(TEN + MINUTE, "Shop.Other", 900, endpoint="Billing")
    text = page(endpoint="Sales")
    part = unescape(matched(r'id="types-part" data-part hx-get="([^"]+)" hx-trigger="load"', text))
    assert "Shop.Slow</a>" not in text
    (row,) = rows(f'<div id="table-types">{as_viewer.get(part).content.decode()}', "types")
    assert row.startswith("Shop. Slow 20")
    assert 'id="types-part"' not in page(table="types"), "scripts off: the address asks for them"


def test_the_slowest_types_are_narrowed_and_read_as_far_as_the_charts(page: Page) -> None:
    timed(TEN + MINUTE, "Shop.Bill", 10, endpoint="Sales")
    timed(TEN + 2 * MINUTE, "Shop.Other", 10, endpoint="Billing")
    timed(TEN + 8 * MINUTE, "Shop.Late", 900, endpoint="Sales")
    HistorySource.objects.update(watermark=TEN + 5 * MINUTE)
    (row,) = rows(page(table="types", endpoint="Sales"), "types")
    assert row.startswith("Shop. Bill 20")


def test_a_long_window_is_compared_with_one_that_ended_before_it(page: Page) -> None:
    """90 days are 13 weeks: compared with one week earlier, most messages would be the same."""
    rolled_up(datetime(2026, 11, 14, tzinfo=UTC), 20, {bucket(50): 20}, grain="day", type="Shop.Bill")
    window = {"since": "", "until": "", "w": "90d", "at": "2026-11-14T10:00:00Z"}
    assert "against 13 weeks before" in page(**window)
    assert rows(page(**window, table="types"), "types")[0].endswith(" –"), "history begins later"
    rolled_up(datetime(2026, 5, 17, tzinfo=UTC), grain="day")
    assert rows(page(**window, table="types"), "types")[0].endswith("none then")
    HistorySource.objects.update(watermark=None)
    assert rows(page(**window, table="types"), "types")[0].endswith(" –"), "not all of it is read"


def test_where_fine_steps_of_the_weeks_before_are_forgotten_nobody_knows(page: Page) -> None:
    timed(TEN + MINUTE, "Shop.Bill", 50)
    for grain, days in (("hour", 7), ("day", 700)):
        rolled_up(datetime(2026, 11, 14, tzinfo=UTC) - timedelta(days=days), grain=grain, type="Shop.Bill")
    assert rows(page(table="types"), "types")[0].endswith(" –")
