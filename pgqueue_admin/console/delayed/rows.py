"""A delayed table as a row: its newest sample, and since when nothing seems to move its overdue messages."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.console import components, url_converters
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting.numbers import format_figure, in_words, of_sum
from pgqueue_admin.models import LatestSample, Queue, database_clock
from pgqueue_admin.monitor import delayed, discovery
from pgqueue_admin.monitor.depth import CAP
from pgqueue_admin.monitor.queue_table import TableKind


@dataclass(frozen=True, slots=True)
class DelayedRow:
    queue: Queue
    of: Queue | None  # the queue whose endpoint delays messages here
    now: datetime

    @property
    def key(self) -> str:
        return f"d{self.queue.pk}"

    @property
    def address(self) -> Address:
        return Address(self.queue.schema, self.queue.table)

    @property
    def of_address(self) -> Address | None:
        return Address(self.of.schema, self.of.table) if self.of else None

    @property
    def latest(self) -> LatestSample | None:
        return getattr(self.queue, "latest", None)

    @property
    def unmoved_since(self) -> datetime | None:
        known = self.latest
        return delayed.unmoved_since(known.overdue, known.next_due_at, self.now) if known else None

    @property
    def tone(self) -> str:
        return "warn" if self.unmoved_since or (self.latest and self.latest.error) else ""


def load() -> list[DelayedRow]:
    """Every existing delayed table: those with a problem first, then by number of messages."""
    now = database_clock.now()
    found = list(Queue.objects.filter(gone_since=None).select_related("latest"))
    named = {Address(queue.schema, queue.table): queue for queue in found if queue.kind != TableKind.DELAYED}
    kept = {Address(queue.schema, queue.table): queue for queue in found if queue.kind == TableKind.DELAYED}
    of = discovery.queues_of(kept, named)
    rows = [DelayedRow(queue, named[of[address]] if address in of else None, now) for address, queue in kept.items()]
    return sorted(rows, key=lambda row: (not row.tone, -_count(row), row.address))


def _count(row: DelayedRow) -> int:
    return (row.latest.delayed or 0) if row.latest else 0


def held(row: DelayedRow) -> SafeString:
    return components.figure(row.latest.delayed, row.latest.delayed_how) if row.latest else components.figure(None)


def next_due(row: DelayedRow) -> SafeString:
    """The soonest due time, which may be past."""
    due, count = (row.latest.next_due_at, row.latest.delayed) if row.latest else (None, None)
    if due:
        return components.ago(due)
    why = "not read" if count is None else "never" if count else "nothing"
    return format_html('<span class="faint">{}</span>', why)


def overdue(row: DelayedRow) -> SafeString:
    count = row.latest.overdue if row.latest else None
    said = late(row.latest)
    return format_html('<b class="warn-t">{}</b>', said) if count and row.unmoved_since else said


def late(known: LatestSample | None) -> SafeString:
    """The number of overdue messages. Only the soonest are counted, up to the cap: all of these may be overdue."""
    return components.figure(known.overdue if known else None, _how_late(known))


def _how_late(known: LatestSample | None) -> str:
    stopped = known and known.delayed_how != "counted" and (known.overdue or 0) >= CAP
    return "capped" if stopped else "counted"


def mover(row: DelayedRow) -> SafeString:
    """Whether a mover runs, as far as is visible from outside."""
    if row.latest and row.latest.error:
        return format_html("{}", row.latest.error)
    if since := row.unmoved_since:
        said = format_html('<span class="warn-t">no mover runs</span>, since {}', components.when(since))
        return format_html("{}. {}", said, _next_step(row))
    return SafeString(_idle(row.latest) if row.latest else "not looked at yet")


def _next_step(row: DelayedRow) -> SafeString:
    """Only the endpoint that owns a delayed table moves its messages."""
    if row.of and row.of.endpoint:
        path = reverse("endpoint", args=[row.of.endpoint])
        return format_html('Its endpoint does while it runs: <a href="{}">see why not, or start it</a>', path)
    if address := row.of_address:
        receives = format_html('<a href="{}#consumers">see who receives</a>', url_converters.queue(address))
        return format_html(
            "Start the endpoint of {}, which runs elsewhere: {}", components.name(address.table), receives
        )
    return SafeString("Start the endpoint that made it; no queue here has its name")


def _idle(known: LatestSample) -> str:
    if known.overdue:
        return "due just now, within a mover's minute"
    return "nothing is due yet" if known.delayed else "nothing to move"


CELLS: dict[str, Callable[[DelayedRow], SafeString]] = {
    "held": held, "due": next_due, "overdue": overdue, "mover": mover,
}  # fmt: skip


def verdict(rows: list[DelayedRow]) -> tuple[str, str]:
    """The state and the sentence that open the page."""
    stuck = [row for row in rows if row.unmoved_since]
    held_back = format_figure(sum(map(_count, rows)), of_sum(row.latest.delayed_how for row in rows if row.latest))
    if stuck:
        tables = f"{in_words(len(stuck))} {'table' if len(stuck) == 1 else 'tables'}"
        return "warn", f"{_all_late(stuck)} overdue in {tables}: no mover runs"
    if held_back == "0":
        return "good", "Nothing is delayed"
    return "good", f"{held_back} {'message waits' if held_back == '1' else 'messages wait'} for a time; none is overdue"


def _all_late(rows: list[DelayedRow]) -> str:
    total = sum(row.latest.overdue or 0 for row in rows if row.latest)
    return format_figure(total, of_sum(_how_late(row.latest) for row in rows))


def live(_: str) -> dict[str, Any]:
    """Topic ``delayed``."""
    rows = load()
    said: dict[str, Any] = {f"{row.key}.{name}": cell(row) for row in rows for name, cell in CELLS.items()}
    said |= {f"{row.key}.tone": row.tone for row in rows}
    state, sentence = verdict(rows)
    return {**said, **components.live_verdict("delayed.verdict", state, sentence), "@title": sentence, "@say": sentence}
