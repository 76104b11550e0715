"""Open warnings grouped by queue: the cause first, its consequences below."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pgqueue_admin.console.alerts.rows import AlertRow
from pgqueue_admin.formatting.numbers import pluralize

# While one of these is open, messages wait: the growing age and depth are its consequences.
CAUSES = ("queue_unreadable", "circuit_breaker_open", "host_lost", "worker_crashing", "deaf", "no_consumer")
CONSEQUENCES = frozenset({"queue_age", "queue_depth"})


class AlertLine(NamedTuple):
    """A warning in its group. ``follows``: the title of the warning that causes it, or "" if none does."""

    row: AlertRow
    follows: str


@dataclass(frozen=True)
class AlertGroup:
    """The open warnings of one queue, or of one subject that is no queue."""

    lines: list[AlertLine]

    @property
    def first(self) -> AlertRow:
        return self.lines[0].row

    @property
    def is_single(self) -> bool:
        return len(self.lines) == 1

    @property
    def numbers(self) -> str:
        """As query parameters of the form that acknowledges them."""
        return "&".join(f"n={line.row.alert.pk}" for line in self.lines)

    @property
    def summary(self) -> str:
        critical = sum(line.row.alert.severity == "critical" for line in self.lines)
        rest = len(self.lines) - critical
        said = [f"{critical} critical"] * bool(critical) + [pluralize(rest, "warning")] * bool(rest)
        return ", ".join(said)


def grouped(rows: Iterable[AlertRow]) -> list[AlertGroup]:
    """Keep the order of first appearance: ``rows`` are sorted by severity, then newest first."""
    found: dict[str, list[AlertRow]] = {}
    for row in rows:
        found.setdefault(row.alert.queue or row.alert.subject, []).append(row)
    return [AlertGroup(_in_order(each)) for each in found.values()]


def _in_order(rows: list[AlertRow]) -> list[AlertLine]:
    cause = min((row for row in rows if row.alert.kind in CAUSES), key=_rank, default=None)
    lines = [AlertLine(row, _follows(row, cause)) for row in rows]
    return sorted(lines, key=lambda line: (line.row is not cause, not line.follows))


def _rank(row: AlertRow) -> int:
    return CAUSES.index(row.alert.kind)


def _follows(row: AlertRow, cause: AlertRow | None) -> str:
    return cause.title if cause is not None and row.alert.kind in CONSEQUENCES else ""
