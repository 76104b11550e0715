"""The offset between the clocks of two servers: samples are stored in the console database's time."""

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import database_clock
from pgqueue_admin.monitor.depth_result import QueueDepth
from pgqueue_admin.monitor.queue_history import RememberedDepth
from pgqueue_admin.monitor.sampler import QueueSample

Facts = TypeVar("Facts", QueueSample, QueueDepth, RememberedDepth)
SLACK = timedelta(seconds=0.5)  # smaller offsets may be the time of the query itself


class ClockOffset:
    """How far the queues' server is ahead, measured between two readings of the console's clock."""

    def __init__(self) -> None:
        self.by = timedelta()

    def note(self, before: datetime, at: datetime, after: datetime) -> None:
        """``at``: time of the queues' server, read between the two readings of the console's clock."""
        if not before - SLACK <= at - self.by <= after + SLACK:
            self.by = at - (before + (after - before) / 2)

    def ask(self, connection: Connection) -> None:
        """Measure once, before values that an earlier sampler stored are used."""
        before, at = database_clock.now(), connection.value(connection.dialect.monitor.server_time())
        self.note(before, at, database_clock.now())

    def taken_off(self, seen: Iterable[QueueSample]) -> list[QueueSample]:
        return [_sample(each, -self.by) for each in seen] if self.by else list(seen)

    def put_on(self, remembered: RememberedDepth | None) -> RememberedDepth | None:
        return _moved(remembered, self.by) if remembered and self.by else remembered


def _sample(seen: QueueSample, by: timedelta) -> QueueSample:
    depth, delayed = (part and _moved(part, by) for part in (seen.depth, seen.delayed))
    return replace(_moved(seen, by), depth=depth, delayed=delayed)


def _moved(facts: Facts, by: timedelta) -> Facts:
    values = {field.name: getattr(facts, field.name) for field in fields(facts)}
    instants: dict[str, Any] = {name: _later(at, by) for name, at in values.items() if isinstance(at, datetime)}
    return replace(facts, **instants)


def _later(at: datetime, by: timedelta) -> datetime:
    """A message may claim the calendar's first or last day as its time."""
    try:
        return at + by
    except OverflowError:
        return at
