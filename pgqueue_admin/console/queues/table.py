"""Rows of the list as HTML, their order and their groups."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.console import components
from pgqueue_admin.console.queue_row.rows import QueueRow, worst_first
from pgqueue_admin.console.queues.columns import COLUMNS, SORTS, TableCell, TableColumn
from pgqueue_admin.formatting.numbers import format_int, pluralize

FOLD_FROM = 3  # fewer are not worth folding


@dataclass(frozen=True, slots=True)
class QueueGroup:
    """Queues of one first name part, all within target: folded into one line with their sums."""

    name: str
    rows: list[QueueRow] = field(default_factory=list)

    @property
    def summary(self) -> str:
        ready = sum(row.waiting for row in self.rows)
        return f"{pluralize(len(self.rows), 'queue')} within target, {format_int(ready)} ready"


def sorting(sort: str) -> str:
    """The sort column, with a minus for descending; empty, so worst first, for anything else."""
    return sort if sort.removeprefix("-") in SORTS else ""


def ordered(rows: Iterable[QueueRow], sort: str) -> list[QueueRow]:
    """Sort by the column, else worst first with tables of unknown kind at the end."""
    name, down = sort.removeprefix("-"), sort.startswith("-")
    if name in SORTS:
        return sorted(rows, key=SORTS[name], reverse=down)
    return sorted(worst_first(rows), key=lambda row: row.queue.kind == "unknown")


def folded(rows: list[QueueRow], opened: str) -> list[QueueRow | QueueGroup]:
    """Fold groups in which nothing needs a person into one line each; ``opened`` names the one to show."""
    families: dict[str, list[QueueRow]] = {}
    for row in rows:
        families.setdefault(_family(row), []).append(row)
    quiet = {
        name
        for name, members in families.items()
        if len(members) >= FOLD_FROM and not any(each.state for each in members)
    }
    out: list[QueueRow | QueueGroup] = []
    for key, run in groupby(rows, lambda row: _family(row) if _family(row) in quiet else ""):
        if not key or key == opened:
            out.extend(run)
        elif not any(isinstance(each, QueueGroup) and each.name == key for each in out):
            out.append(QueueGroup(key, families[key]))
    return out


def _family(row: QueueRow) -> str:
    return row.address.table.partition(".")[0]


def lines(shown: Iterable[QueueRow | QueueGroup]) -> Iterator[tuple[str, object]]:
    """Consecutive rows as one piece of HTML, each group by itself."""
    for folds, run in groupby(shown, lambda each: isinstance(each, QueueGroup)):
        if folds:
            yield from (("group", each) for each in run)
        else:
            yield "rows", html(run)  # type: ignore[arg-type]


def html(rows: Iterable[QueueRow]) -> SafeString:
    return mark_safe("\n".join(_html(row) for row in rows))


def _html(row: QueueRow) -> str:
    """One row, one element a cell."""
    cells = "".join(_cell(row.key, column, column.cell(row)) for column in COLUMNS)
    link = f'<a href="{escape(row.path)}">{components.seen(row.address.table)}</a>'
    kind = row.queue.kind + (f", {row.address.schema}" if row.address.schema != "public" else "")
    why = f": {row.queue.reason}" if row.queue.kind == "unknown" and row.queue.reason else ""
    return (
        f'<tr role="row" class="{row.state}" data-row="{row.queue.pk}" data-live-class="{row.key}.state">'
        f'<th role="rowheader" scope="row" class="name full">{link} {escape(kind)}{escape(why)}</th>{cells}</tr>'
    )


def _cell(key: str, column: TableColumn, cell: TableCell) -> str:
    classes = f"{column.css} {cell.css}".strip()
    kind = f' data-kind="{cell.kind}"' if cell.kind else ""
    return (
        f'<td role="cell" class="{classes}" data-l="{column.word}" data-live="{key}.{column.name}"'
        f"{kind} {cell.attributes}>{escape(cell.text)}</td>"
    )


def live(rows: Iterable[QueueRow]) -> dict[str, str]:
    """Live updates: the bare texts. The browser advances ages by itself."""
    said: dict[str, str] = {}
    for row in rows:
        said |= {
            f"{row.key}.{column.name}": escape(column.cell(row).text) for column in COLUMNS if column.name != "age"
        }
        said[f"{row.key}.state"] = row.state
    return said
