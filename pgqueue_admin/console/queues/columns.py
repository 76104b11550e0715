"""The columns of the list: the text of a cell, how it is known, and its sort key.

Cells are bare text, one element each: two hundred rows stay under three thousand nodes (CONSOLE 10).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.console.queue_row.sparklines import target_words
from pgqueue_admin.formatting import numbers, times
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import UNKNOWN, format_figure


class TableCell(NamedTuple):
    text: str
    kind: str = ""  # how it is known; "" is no figure
    css: str = ""
    attributes: str = ""


class TableColumn(NamedTuple):
    name: str
    word: str
    cell: Callable[[QueueRow], TableCell]
    key: Callable[[QueueRow], Any]
    css: str = "num"


def _count(value: int | None, how: str = "counted", css: str = "") -> TableCell:
    return TableCell(format_figure(value, how), "unknown" if value is None else how, css)


def ready(row: QueueRow) -> TableCell:
    return _count(row.latest.ready, row.latest.how) if row.latest else TableCell(UNKNOWN, "unknown")


def oldest(row: QueueRow) -> TableCell:
    if row.age is None or row.latest is None or row.latest.oldest_at is None:
        return TableCell(row.no_age, "unknown")
    how = row.latest.oldest_how
    about = numbers.about(how)
    target = row.judged_age
    past = "crit-t" if target is not None and row.age > target else ""
    moves = f'data-since="{times.iso(row.latest.oldest_at)}" data-target="{target or ""}" data-about="{about}"'
    return TableCell(about + duration(float(int(row.age)) if row.age >= 10 else row.age), how, past, moves)


def target(row: QueueRow) -> TableCell:
    return TableCell(target_words(row.queue.target_age_seconds))


def entering(row: QueueRow) -> TableCell:
    return _rate(row.entering)


def leaving(row: QueueRow) -> TableCell:
    return _rate(row.leaving, row.leaving_how)


def _rate(per_second: float | None, how: str = "counted") -> TableCell:
    return TableCell(cells.rate_words(per_second, how), "unknown" if per_second is None else how)


def trend(row: QueueRow) -> TableCell:
    tone = {"grows": "crit-t" if row.state == "crit" else "", "empties": "good-t"}.get(row.trend.tone, "")
    return TableCell(row.trend.words, css=tone)


def delayed(row: QueueRow) -> TableCell:
    return _count(row.latest.delayed, row.latest.delayed_how) if row.latest else TableCell(UNKNOWN, "unknown")


def expired(row: QueueRow) -> TableCell:
    return _count(row.latest.expired, row.latest.how) if row.latest else TableCell(UNKNOWN, "unknown")


def dead(row: QueueRow) -> TableCell:
    count = row.latest.dead if row.latest else None
    return _count(count, row.dead_how, "crit-t" if count else "")


def span(row: QueueRow) -> TableCell:
    return _count(row.span)


def consumers(row: QueueRow) -> TableCell:
    said = row.consumers
    return TableCell(said.words, css="crit-t" if said.tone == "crit" else "")


def _number(value: float | None) -> float:
    return -1.0 if value is None else value


def _sampled(row: QueueRow, field: str) -> float:
    return _number(getattr(row.latest, field, None))


COLUMNS = (
    TableColumn("ready", "Ready", ready, lambda row: _sampled(row, "ready")),
    TableColumn("age", "Oldest", oldest, lambda row: _number(row.age)),
    TableColumn("target", "Target", target, lambda row: _number(row.queue.target_age_seconds), css="num drop mid"),
    TableColumn("in", "In /s", entering, lambda row: _sampled(row, "in_per_second"), css="num drop mid"),
    TableColumn("out", "Out /s", leaving, lambda row: _sampled(row, "out_per_second"), css="num drop mid"),
    TableColumn("trend", "Trend", trend, lambda row: row.growth, css=""),
    TableColumn("delayed", "Delayed", delayed, lambda row: _sampled(row, "delayed"), css="num drop mid"),
    TableColumn("expired", "Expired", expired, lambda row: _sampled(row, "expired"), css="num drop mid"),
    TableColumn("dead", "Dead", dead, lambda row: _sampled(row, "dead")),
    TableColumn("span", "Seq span", span, lambda row: _number(row.span), css="num drop mid"),
    TableColumn("consumers", "Consumers", consumers, lambda row: row.consumers.words, css=""),
)
SORTS: dict[str, Callable[[QueueRow], Any]] = {
    **{column.name: column.key for column in COLUMNS},
    "name": lambda row: (row.address.table.lower(), row.address.schema),
    "schema": lambda row: (row.address.schema, row.address.table.lower()),
    "kind": lambda row: (row.queue.kind, row.address.table.lower()),
}
