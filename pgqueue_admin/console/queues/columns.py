"""The columns of the list: what stands in a cell, how it is known, and what it sorts by.

Cells are bare text, one element each: two hundred rows stay under three thousand nodes (CONSOLE 10).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board.charts import target_words
from pgqueue_admin.console.board.rows import Row
from pgqueue_admin.wording import figures, times
from pgqueue_admin.wording.durations import duration
from pgqueue_admin.wording.figures import UNKNOWN, figure


class Cell(NamedTuple):
    text: str
    kind: str = ""  # how it is known; "" is no figure
    css: str = ""
    attributes: str = ""


class Column(NamedTuple):
    name: str
    word: str
    cell: Callable[[Row], Cell]
    key: Callable[[Row], Any]
    css: str = "num"


def _count(value: int | None, how: str = "counted", css: str = "") -> Cell:
    return Cell(figure(value, how), "unknown" if value is None else how, css)


def ready(row: Row) -> Cell:
    return _count(row.latest.ready, row.latest.how) if row.latest else Cell(UNKNOWN, "unknown")


def oldest(row: Row) -> Cell:
    if row.age is None or row.latest is None or row.latest.oldest_at is None:
        return Cell(row.no_age, "unknown")
    how = row.latest.oldest_how
    about = figures.about(how)
    target = row.judged_age
    past = "crit-t" if target is not None and row.age > target else ""
    moves = f'data-since="{times.iso(row.latest.oldest_at)}" data-target="{target or ""}" data-about="{about}"'
    return Cell(about + duration(float(int(row.age)) if row.age >= 10 else row.age), how, past, moves)


def target(row: Row) -> Cell:
    return Cell(target_words(row.queue.target_age_seconds))


def entering(row: Row) -> Cell:
    return _rate(row.entering)


def leaving(row: Row) -> Cell:
    return _rate(row.leaving, row.leaving_how)


def _rate(per_second: float | None, how: str = "counted") -> Cell:
    return Cell(cells.rate_words(per_second, how), "unknown" if per_second is None else how)


def trend(row: Row) -> Cell:
    tone = {"grows": "crit-t" if row.state == "crit" else "", "empties": "good-t"}.get(row.trend.tone, "")
    return Cell(row.trend.words, css=tone)


def delayed(row: Row) -> Cell:
    return _count(row.latest.delayed, row.latest.delayed_how) if row.latest else Cell(UNKNOWN, "unknown")


def expired(row: Row) -> Cell:
    return _count(row.latest.expired, row.latest.how) if row.latest else Cell(UNKNOWN, "unknown")


def dead(row: Row) -> Cell:
    count = row.latest.dead if row.latest else None
    return _count(count, row.dead_how, "crit-t" if count else "")


def span(row: Row) -> Cell:
    return _count(row.span)


def consumers(row: Row) -> Cell:
    said = row.consumers
    return Cell(said.words, css="crit-t" if said.tone == "crit" else "")


def _number(value: float | None) -> float:
    return -1.0 if value is None else value


def _sampled(row: Row, field: str) -> float:
    return _number(getattr(row.latest, field, None))


COLUMNS = (
    Column("ready", "Ready", ready, lambda row: _sampled(row, "ready")),
    Column("age", "Oldest", oldest, lambda row: _number(row.age)),
    Column("target", "Target", target, lambda row: _number(row.queue.target_age_seconds), css="num drop mid"),
    Column("in", "In /s", entering, lambda row: _sampled(row, "in_per_second"), css="num drop mid"),
    Column("out", "Out /s", leaving, lambda row: _sampled(row, "out_per_second"), css="num drop mid"),
    Column("trend", "Trend", trend, lambda row: row.growth, css=""),
    Column("delayed", "Delayed", delayed, lambda row: _sampled(row, "delayed"), css="num drop mid"),
    Column("expired", "Expired", expired, lambda row: _sampled(row, "expired"), css="num drop mid"),
    Column("dead", "Dead", dead, lambda row: _sampled(row, "dead")),
    Column("span", "Seq span", span, lambda row: _number(row.span), css="num drop mid"),
    Column("consumers", "Consumers", consumers, lambda row: row.consumers.words, css=""),
)
SORTS: dict[str, Callable[[Row], Any]] = {
    **{column.name: column.key for column in COLUMNS},
    "name": lambda row: (row.address.table.lower(), row.address.schema),
    "schema": lambda row: (row.address.schema, row.address.table.lower()),
    "kind": lambda row: (row.queue.kind, row.address.table.lower()),
}
