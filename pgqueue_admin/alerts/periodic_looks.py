"""Queries that the alerter runs periodically, instead of on each pass."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

import django.db

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery, lease_messages
from pgqueue_admin.monitor.lease_messages import LocksOver
from pgqueue_admin.monitor.queue_table import TableKind

EVERY = 30.0  # seconds between two looks of the alerter
CROSSING_LATE = timedelta(minutes=5)  # housekeeping settles each minute, and a chunk of large bodies may take some
SCHEDULE_LATE = timedelta(minutes=3)  # every runner checks each minute
LOCK_LATE = timedelta(minutes=3)  # every program that ends locks does so each minute

_T = TypeVar("_T")


class PeriodicLook(ABC, Generic[_T]):
    """``every``: seconds between two looks."""

    def __init__(self, every: float = EVERY) -> None:
        self._every, self._look_at = every, 0.0
        self._newest: _T | None = None

    def newest(self) -> _T | None:
        """Return the latest result; None if the last look failed."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + self._every
            try:
                self._newest = self._look()
            except (DatabaseError, django.db.Error):
                self._newest = None
        return self._newest

    @abstractmethod
    def _look(self) -> _T:
        """Raises DatabaseError, django.db.Error."""


class CrossingWatch(PeriodicLook[list[Any]]):
    """Messages between two databases whose arrival should be known by now: rows of ``unsettled`` (crossing_intent.sql),
    one per other database.
    """

    def _look(self) -> list[Any]:
        with queue_database().read_session() as connection:
            return crossings.unsettled(connection, CROSSING_LATE)


class ScheduleWatch(PeriodicLook[list[Any]]):
    """Schedules whose message is overdue: rows of ``unsent`` (schedule.sql). A database without tables for schedules
    has none.
    """

    def _look(self) -> list[Any]:
        store = queue_database().dialect.schedules
        with queue_database().read_session() as connection:
            return store.unsent(connection, SCHEDULE_LATE) if store and store.is_installed(connection) else []


@dataclass(frozen=True, slots=True)
class LeaseLocks:
    """``is_ours``: the table has our columns, so our housekeeping ends its locks."""

    over: LocksOver
    is_ours: bool

    @property
    def late(self) -> timedelta:
        """The time since the first lock expired; zero: none has."""
        return self.over.at - self.over.since if self.over.since else timedelta(0)


class LeaseLockWatch(PeriodicLook[list[LeaseLocks]]):
    """Expired locks of the lease queue that nothing ends, even if its schema is not watched. A database without one has
    none.
    """

    def _look(self) -> list[LeaseLocks]:
        if queue_database().dialect.leases is None:
            return []
        with queue_database().read_session() as connection:
            table = discovery.readable(connection, QUEUE)
            if table is None or table.kind is not TableKind.LEASE:
                return []
            return [LeaseLocks(lease_messages.locks_over(connection, table), table.has_attempts)]
