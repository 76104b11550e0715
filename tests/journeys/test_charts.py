"""The charts of Trends agree with history's figures: the drawing, the readout under the cursor, and the table."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils.dateformat import format as date_format
from playwright.sync_api import Page, expect

from pgqueue_admin.formatting.durations import measured, nearest
from pgqueue_admin.formatting.numbers import NBSP, format_int
from pgqueue_admin.history.rollups.histogram import value
from pgqueue_admin.models import HistorySource
from tests.databases import Databases
from tests.history.rollup_factory import rolled_up
from tests.journeys.product import Product

pytestmark = pytest.mark.journey
HOURS, SHOP = 5, "Journey.Charted"
COUNTED = {"succeeded": 1, "failed": 2}  # columns of the table
TIMED = {"p50": 4, "p95": 5, "p99": 6}


@pytest.fixture
def figures(product: Product, databases: Databases, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Five hours of an endpoint of this test's own, each with other counts and times."""
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # the browser runs its own event loop in this thread
    begin = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - (HOURS + 1) * timedelta(hours=1)
    with databases.as_django(product.dsn):
        for hour in range(HOURS):
            at = begin + hour * timedelta(hours=1)
            timed: dict[str, Any] = {
                "critical_buckets": [200 + 40 * hour, 500],
                "critical_counts": [1000 * hour + 90, 10],
            }
            rolled_up(at, 1000 * hour + 100, grain="hour", endpoint=SHOP, **timed)
            rolled_up(at, hour, grain="hour", endpoint=SHOP, result="failed")
        yield
        HistorySource.objects.filter(table="audit").delete()


def test_each_figure_of_a_chart_is_that_of_its_table(page: Page, product: Product, figures: None) -> None:
    page.goto(f"{product.url}/trends/?w=24h&endpoint={SHOP}&table=steps")
    data = json.loads(page.locator("#trends").get_attribute("data-trends") or "")
    drawn = [place for place, number in enumerate(data["succeeded"]) if number]
    rows = page.locator("#table-steps tbody tr").all()
    told = [row.locator("td, th").all_inner_texts() for row in rows if row.locator("td a").count()]
    assert len(drawn) == len(told) == HOURS
    chart = page.locator('[data-plot="many"]')
    expect(chart.locator("canvas")).to_be_visible()
    chart.focus()
    page.keyboard.press("ArrowRight")  # the newest step, then backwards
    at = len(data["at"]) - 1
    for place, cells in zip(reversed(drawn), told, strict=True):
        while at > place:
            page.keyboard.press("ArrowLeft")
            at -= 1
        for name, column in COUNTED.items():
            read = page.locator(f'[data-read="{name}"]').first.inner_text()
            assert plain(read) == plain(cells[column]) == str(data[name][place]), (name, cells[0])
        for name, column in TIMED.items():
            read = page.locator(f'[data-read="{name}"]').first.inner_text()
            assert read.strip() == cells[column].strip() == f"≈{NBSP}{measured(data[name][place])}", (name, cells[0])


def test_a_chart_says_every_span_and_count_as_tables_do(page: Page, product: Product) -> None:
    """For every bucket of a time, and every form: the browser formats the values as the server does."""
    page.goto(f"{product.url}/trends/")
    spans = [value(each) for each in range(-1, 1_300)]
    said = page.evaluate("told => told.map(window.pgqueue.plot.span)", [nearest(each) for each in spans])
    assert said == [measured(each) for each in spans]
    counts = [0, 999, 1_234_567, 99_999_999, 123_456_789, 2**31, 7 * 10**12]
    assert page.evaluate("told => told.map(window.pgqueue.plot.integer)", counts) == [
        format_int(each) for each in counts
    ]


def test_a_chart_says_every_month_as_tables_do(page: Page, product: Product) -> None:
    """Browsers abbreviate September to Sept in British English."""
    page.goto(f"{product.url}/trends/")
    days = [datetime(2020, month, 7, tzinfo=UTC) for month in range(1, 13)]
    said = page.evaluate("told => told.map(window.pgqueue.plot.day)", [each.timestamp() for each in days])
    assert said == [date_format(each, "j M Y") for each in days]


def plain(text: str) -> str:
    return re.sub(r"[\s,≈]", "", text)
