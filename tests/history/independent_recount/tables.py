"""The tables beside Trends' charts, read from the page: steps and cells of days equal a recount's."""

import re
from html import unescape
from typing import Any

from django.test import Client

from pgqueue_admin.history.rollups.queries import MEASURES
from tests.console.pages import matched, shown
from tests.history.independent_recount import counts, times
from tests.history.independent_recount.windows import ALL, Window


def tables_agree(client: Client, plain: dict[Any, Any], window: Window) -> None:
    """``window``: one shown by day."""
    days, retried = plain[counts]["counts", "day", ALL], plain[counts]["retried", "day", ALL]
    steps = [[succeeded, failed, retried.get(at, 0)] for at, (succeeded, failed, _) in _newest_first(days)]
    assert [row[:3] for row in _numbers(client, window, "steps", "critical")] == steps
    shares = [[succeeded + failed, failed] for _, (succeeded, failed, _) in _newest_first(days)]
    assert [row[:2] for row in _numbers(client, window, "share", "critical")] == shares
    for measure in MEASURES:
        timed = plain[times][measure, "day", ALL]
        bands = {band for _, cells in timed.values() for band in cells}
        shown_bands = range(min(bands), max(bands) + 1)
        cells = [
            [*(cells.get(band, 0) for band in shown_bands), days[at][1]] for at, (_, cells) in _newest_first(timed)
        ]
        assert _numbers(client, window, "heat", measure) == cells, measure


def _newest_first(found: dict[int, Any]) -> list[tuple[int, Any]]:
    return sorted(found.items(), reverse=True)


def _numbers(client: Client, window: Window, name: str, measure: str) -> list[list[int | None]]:
    """Numbers of each row without its time; None for a cell without a whole number."""
    since, until = (f"{each:%Y-%m-%dT%H:%MZ}" for each in window)
    page = shown(client, f"/trends/?since={since}&until={until}&m={measure}&table={name}")
    body = matched(rf'<div id="table-{name}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = [
        re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    ]
    return [[_number(unescape(re.sub(r"<[^>]*>", "", cell)).strip()) for cell in row] for row in rows]


def _number(text: str) -> int | None:
    return int(text.replace(",", "")) if re.fullmatch(r"[\d,]+", text) else None
