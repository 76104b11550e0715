"""The six totals: of all queues, or of those that this person may see."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from pgqueue_admin.console import components
from pgqueue_admin.console.queue_row.rows import QueueRow
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.formatting.numbers import format_figure, format_int, of_sum, pluralize
from pgqueue_admin.models import Alert, queue_overview
from pgqueue_admin.models.processes import EndpointProcesses

WORK = frozenset({"input", "lease"})


@dataclass(frozen=True, slots=True)
class Total:
    """One figure of the strip: its swatch or icon, its value, and the line below."""

    name: str
    word: str
    value: SafeString
    detail: SafeString
    series: str = ""
    icon: str = ""
    tone: str = ""


@dataclass
class Totals:
    rows: Sequence[QueueRow]
    teams: Sequence[EndpointProcesses]
    causes: Sequence[Alert]
    archive: queue_overview.DeadCount
    now: datetime
    work: list[QueueRow] = field(init=False)

    def __post_init__(self) -> None:
        self.work = [row for row in self.rows if row.queue.kind in WORK]

    def all(self) -> list[Total]:
        """All totals; under a queue scope without Dead: the archive's are counted over all queues."""
        dead = [self.dead()] if visible_queues.current() is None else []
        return [self.ready(), self.in_flight(), self.delayed(), *dead, self.entering(), self.leaving()]

    def ready(self) -> Total:
        value = self._sum(row.latest.ready for row in self.work if row.latest)
        how = of_sum(row.latest.how for row in self.work if row.latest)
        backlog = sum(1 for row in self.work if row.waiting)
        detail = f"in {backlog} of {pluralize(len(self.work), 'input queue')}"
        if unread := sum(1 for row in self.work if row.latest and row.latest.error):
            detail += f"; {format_int(unread)} cannot be read: as last seen"
        return Total("ready", "Ready", components.figure(value, how), _text(detail), series="ready")

    def in_flight(self) -> Total:
        value = self._sum(row.latest.in_flight for row in self.work if row.latest)
        slots = sum(team.slots for team in self.teams)
        busy = sum(team.busy for team in self.teams)
        detail = f"{format_int(busy)} of our {format_int(slots)} slots busy" if slots else "a hint, read without locks"
        return Total("flight", "In flight", components.figure(value, "hint"), _text(detail), series="flight")

    def delayed(self) -> Total:
        """Delayed messages of all delayed tables, as the rail and the page Delayed count them."""
        kept = [row for row in self.rows if row.latest and row.queue.kind == "delayed"]
        value = self._sum(row.latest.delayed for row in kept if row.latest)
        due = min((row.latest.next_due_at for row in kept if row.latest and row.latest.next_due_at), default=None)
        detail = components.soonest(due, value if kept else 0, self.now, "nothing delayed")
        how = of_sum(row.latest.delayed_how for row in kept if row.latest)
        return Total("delayed", "Delayed", components.figure(value, how), detail, series="delayed")

    def dead(self) -> Total:
        value = self._sum([self.lying(), self.archive.archived])
        grown = _grown(value, self.archive)
        causes = pluralize(len(self.causes), "cause") if self.causes else ""
        detail = ", ".join(part for part in (grown, causes) if part) or ("none" if value == 0 else "")
        tone = "hot" if value else ""
        return Total(
            "dead",
            "Dead",
            components.figure(value, of_sum(row.dead_how for row in self._errors())),
            _text(detail),
            series="dead",
            tone=tone,
        )

    def lying(self) -> int | None:
        """Dead messages in error queues: messages that died in other queues are in the archive."""
        lying: int | None = self._sum(row.latest.dead for row in self._errors() if row.latest)
        return lying

    def _errors(self) -> list[QueueRow]:
        return [row for row in self.rows if row.latest and row.queue.kind == "error"]

    def entering(self) -> Total:
        known = [row.entering for row in self.work]
        return Total("in", "In", components.rate(self._sum(known)), _text(f"into {self._of_all(known)}"), icon="in")

    def leaving(self) -> Total:
        known = [row.leaving for row in self.work]
        value = components.rate(self._sum(known), of_sum(row.leaving_how for row in self.work))
        return Total("out", "Out", value, _text(f"out of {self._of_all(known)}"), icon="up")

    @staticmethod
    def _of_all(known: Sequence[float | None]) -> str:
        """Which queues have a rate in the sum."""
        missing = sum(rate is None for rate in known)
        of_all = f"{format_int(len(known) - missing)} of {format_int(len(known))} " if missing else ""
        return f"{of_all}input queues"

    @staticmethod
    def _sum(values: Iterable[Any]) -> Any:
        known = [value for value in values if value is not None]
        return sum(known) if known else None


def _grown(value: int | None, known: queue_overview.DeadCount) -> str:
    """Growth within an hour, if a count from then exists."""
    if not value or known.archived_then is None:
        return ""
    more = value - known.archived_then - (known.lying_then or 0)
    return f"+{format_figure(more)} in 1 h" if more > 0 else ""


def _text(said: str) -> SafeString:
    return format_html("{}", said) if said else mark_safe("")
