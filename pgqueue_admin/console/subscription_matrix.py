"""Subscriptions as a matrix: events down, endpoints across, in each cell the worst that is known of it."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pgqueue_admin.console.subscriptions import Row
from pgqueue_admin.wording.figures import counted

MOST = 40  # of each: more are read better as a list


class Cell(NamedTuple):
    """``icon`` and ``words`` say it, ``addresses`` where the copies go; nothing: it does not subscribe."""

    icon: str = ""
    words: str = ""
    addresses: str = ""


class Line(NamedTuple):
    event: Row
    cells: list[Cell]
    has_namesake: bool  # another type has the same short name


class Matrix(NamedTuple):
    endpoints: list[str]
    lines: list[Line]
    refusal: str  # why it is not drawn


def matrix(rows: Sequence[Row]) -> Matrix:
    """Of rows as they are listed: those that lead nowhere come first."""
    endpoints = sorted({row.of.endpoint for row in rows})
    events: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        events.setdefault(row.of.topic, {}).setdefault(row.of.endpoint, []).append(row)
    if max(len(endpoints), len(events)) > MOST:
        said = f"{counted(len(events), 'event')} of {counted(len(endpoints), 'endpoint')}"
        return Matrix([], [], f"A matrix has room for {MOST} of each, and these are {said}. A filter narrows them.")
    lines = [(next(iter(each.values()))[0], each) for each in events.values()]
    names = Counter(event.type for event, _ in lines)
    return Matrix(endpoints, [_line(event, each, endpoints, names[event.type] > 1) for event, each in lines], "")


def _line(event: Row, by_endpoint: dict[str, list[Row]], endpoints: list[str], has_namesake: bool) -> Line:
    return Line(event, [_cell(by_endpoint.get(endpoint, [])) for endpoint in endpoints], has_namesake)


def _cell(rows: list[Row]) -> Cell:
    if not rows:
        return Cell()
    addresses = ", ".join(row.of.queueaddress for row in rows)
    if any(row.leads_nowhere for row in rows):
        return Cell("crit", "no such queue", addresses)
    if any(row.twins for row in rows):
        return Cell("warn", "case differs", addresses)
    return Cell("ok", "gets it", addresses)
