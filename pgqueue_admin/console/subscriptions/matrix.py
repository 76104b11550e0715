"""Subscriptions as a matrix: events down, endpoints across, each cell with its worst state."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pgqueue_admin.console.subscriptions.rows import SubscriptionEventRow
from pgqueue_admin.formatting.numbers import pluralize

MOST = 40  # of each; a list reads better beyond


class MatrixCell(NamedTuple):
    """``icon`` and ``words``: its state; ``addresses``: where the copies go. All empty: it does not subscribe."""

    icon: str = ""
    words: str = ""
    addresses: str = ""


class MatrixRow(NamedTuple):
    event: SubscriptionEventRow
    cells: list[MatrixCell]
    has_namesake: bool  # another type has the same short name


class SubscriptionMatrix(NamedTuple):
    endpoints: list[str]
    lines: list[MatrixRow]
    refusal: str  # why it is not drawn


def matrix(rows: Sequence[SubscriptionEventRow]) -> SubscriptionMatrix:
    """``rows``: as listed, so those to a queue that does not exist come first."""
    endpoints = sorted({row.of.endpoint for row in rows})
    events: dict[str, dict[str, list[SubscriptionEventRow]]] = {}
    for row in rows:
        events.setdefault(row.of.topic, {}).setdefault(row.of.endpoint, []).append(row)
    if max(len(endpoints), len(events)) > MOST:
        said = f"{pluralize(len(events), 'event')} of {pluralize(len(endpoints), 'endpoint')}"
        return SubscriptionMatrix(
            [], [], f"A matrix has room for {MOST} of each, and these are {said}. A filter narrows them."
        )
    lines = [(next(iter(each.values()))[0], each) for each in events.values()]
    names = Counter(event.type for event, _ in lines)
    return SubscriptionMatrix(
        endpoints, [_line(event, each, endpoints, names[event.type] > 1) for event, each in lines], ""
    )


def _line(
    event: SubscriptionEventRow,
    by_endpoint: dict[str, list[SubscriptionEventRow]],
    endpoints: list[str],
    has_namesake: bool,
) -> MatrixRow:
    return MatrixRow(event, [_cell(by_endpoint.get(endpoint, [])) for endpoint in endpoints], has_namesake)


def _cell(rows: list[SubscriptionEventRow]) -> MatrixCell:
    if not rows:
        return MatrixCell()
    addresses = ", ".join(row.of.queueaddress for row in rows)
    if any(row.leads_nowhere for row in rows):
        return MatrixCell("crit", "no such queue", addresses)
    if any(row.twins for row in rows):
        return MatrixCell("warn", "case differs", addresses)
    return MatrixCell("ok", "gets it", addresses)
