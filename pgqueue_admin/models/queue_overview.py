"""Every queue with its newest figures, without the cost of model instances: pages read hundreds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import LatestSample, Queue
from pgqueue_admin.models.raw_sql import console_sql, rows_of


@dataclass(slots=True)
class QueueFacts:
    """The columns of Queue that a row shows and is judged by."""

    pk: int
    schema: str
    table: str
    kind: str
    reason: str
    target_age_seconds: int | None
    target_depth: int | None
    target_dead: int | None
    ingest: bool
    endpoint: str


@dataclass(slots=True)
class QueueFigures:
    """The same of LatestSample."""

    ready: int | None
    in_flight: int | None
    delayed: int | None
    expired: int | None
    dead: int | None
    depth: int | None
    how: str
    delayed_how: str
    head_seq: int | None
    tail_seq: int | None
    in_per_second: float | None
    out_per_second: float | None
    oldest_how: str
    error: str
    sqlstate: str
    at: datetime
    oldest_at: datetime | None
    next_due_at: datetime | None
    changed_at: datetime
    last_departure_at: datetime | None


# the page of one queue uses the models
Known: TypeAlias = Queue | QueueFacts
Newest: TypeAlias = LatestSample | QueueFigures


class DeadCount(NamedTuple):
    """Dead messages: in the archive now and an hour ago, and in error queues an hour ago."""

    archived: int | None
    archived_then: int | None
    lying_then: int | None


FACTS, INSTANTS = 10, 5  # number of columns, from the left and from the right


def rows() -> list[tuple[QueueFacts, QueueFigures | None]]:
    """Visible queues ordered by address; a queue never sampled has no figures."""
    found = rows_of(console_sql.queue_overview.rows(), _seen())
    return [(QueueFacts(*row[:FACTS]), _figures(row[FACTS:])) for row in found]


def _seen() -> dict[str, list[int] | None]:
    visible = visible_queues.current()
    return {"seen": list(visible.ids) if visible else None}


def _figures(row: Sequence[Any]) -> QueueFigures | None:
    instants = map(_instant, row[-INSTANTS:])
    return QueueFigures(*row[:-INSTANTS], *instants) if row[-INSTANTS] is not None else None


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def dead(now: datetime) -> DeadCount:
    """The archive's counts cover all queues together: None for a person who sees only some."""
    found = DeadCount(*rows_of(console_sql.queue_overview.dead(), {"then": now - timedelta(hours=1), **_seen()})[0])
    return found._replace(archived=None, archived_then=None) if visible_queues.current() else found


def dead_then(queue_ids: Iterable[int], then: datetime) -> dict[int, int]:
    """Dead messages in each of these queues at that time; queues whose number is unknown are absent."""
    return dict(rows_of(console_sql.queue_overview.dead_then(), {"queues": list(queue_ids), "then": then}))
