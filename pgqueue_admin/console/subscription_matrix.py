"""Subscriptions as a matrix: events down, endpoints across, in each cell the worst that is known of it."""

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
    return Matrix(endpoints, [_line(by_endpoint, endpoints) for by_endpoint in events.values()], "")


def _line(by_endpoint: dict[str, list[Row]], endpoints: list[str]) -> Line:
    event = next(iter(by_endpoint.values()))[0]
    return Line(event, [_cell(by_endpoint.get(endpoint, [])) for endpoint in endpoints])


def _cell(rows: list[Row]) -> Cell:
    if not rows:
        return Cell()
    addresses = ", ".join(row.of.queueaddress for row in rows)
    if any(row.leads_nowhere for row in rows):
        return Cell("crit", "no such queue", addresses)
    if any(row.twins for row in rows):
        return Cell("warn", "case differs", addresses)
    return Cell("ok", "gets it", addresses)
