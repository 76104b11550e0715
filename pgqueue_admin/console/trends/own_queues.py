"""Trends under a queue scope: of one visible queue at a time. All other sums contain hidden queues."""

from dataclasses import replace

from django.db.models import Sum

from pgqueue_admin.console.trends.time_range import TimeRange
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.rollups.name_limits import may_be_cut
from pgqueue_admin.history.rollups.queries import TrendQuery
from pgqueue_admin.models import Queue, Rollup

MOST_TYPES = 200
ANOTHER = "None of your queues has this name: the first one is shown."
Choices = list[tuple[str, list[str], str]]


class NoOwnQueue(Exception):
    """None of the person's queues exists. Its text is shown to them."""


def narrowed(window: TimeRange, names: list[str] | None) -> TimeRange:
    """Narrow to the requested queue, or to the first of ``names``; unchanged without a scope.

    Raises NoOwnQueue.
    """
    if names is None:
        return window
    if not names:
        raise NoOwnQueue("None of your queues is here yet, so Trends has no figures that are of yours alone.")
    wanted = window.asked.queue
    faults = [*window.faults, *([ANOTHER] if wanted and wanted not in names else [])]
    queue = wanted if wanted in names else names[0]
    return replace(window, asked=replace(window.asked, queue=queue, endpoint=""), faults=faults)


def choices(asked: TrendQuery, names: list[str]) -> Choices:
    """The choices and what is chosen, in the form that ``views`` uses."""
    types = _types(asked)
    absent = [asked.type] if asked.type and asked.type not in types else []
    return [("queue", names, asked.queue), ("type", [*absent, *types], asked.type)]


def names() -> list[str] | None:
    """Existing visible queues; without names that figures cut, since several queues count as one there. None: all."""
    if visible_queues.current() is None:
        return None
    of_kind = {"input": 0, "lease": 0}
    known = Queue.objects.filter(gone_since=None)
    found = sorted(known, key=lambda queue: (of_kind.get(queue.kind, 1), queue.schema, queue.table))
    canonical = (postgresql().canonical(Address(queue.schema, queue.table)) for queue in found)
    return [name for name in canonical if not may_be_cut(name)]


def _types(asked: TrendQuery) -> list[str]:
    """Types of the queue in the window, those with most messages first."""
    figures = Rollup.objects.filter(queue=asked.queue, grain=asked.grain, at__gte=asked.since, at__lt=asked.until)
    summed = figures.exclude(type="").values("type").annotate(all=Sum("messages")).order_by("-all", "type")
    return [each["type"] for each in summed[:MOST_TYPES]]
