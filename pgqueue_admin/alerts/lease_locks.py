"""Locks of the lease queue that are over and that nobody ends."""

from dataclasses import dataclass
from datetime import timedelta

from pgqueue_admin.alerts.periodic_look import PeriodicLook
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery, lease_messages
from pgqueue_admin.monitor.lease_messages import LocksOver
from pgqueue_admin.monitor.queue_table import TableKind

EVERY = 30.0  # seconds between two looks of the alerter
LATE = timedelta(minutes=3)  # everybody who ends them does so each minute


@dataclass(frozen=True, slots=True)
class LeaseLocks:
    """``is_ours``: its table has our columns, so our housekeeping ends its locks."""

    over: LocksOver
    is_ours: bool

    @property
    def late(self) -> timedelta:
        """How long the first is over; none: nothing is."""
        return self.over.at - self.over.since if self.over.since else timedelta(0)


class LeaseLockWatch(PeriodicLook[list[LeaseLocks]]):
    """Of the lease queue, whether or not its schema is shown. A database without one has none."""

    def __init__(self) -> None:
        super().__init__(EVERY)

    def _look(self) -> list[LeaseLocks]:
        if queue_database().dialect.leases is None:
            return []
        with queue_database().reading() as connection:
            table = discovery.readable(connection, QUEUE)
            if table is None or table.kind is not TableKind.LEASE:
                return []
            return [LeaseLocks(lease_messages.locks_over(connection, table), table.has_attempts)]
