"""Transactions over several databases that are prepared and not ended, and who waits for them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting import durations

MOST = 100
LATE = timedelta(minutes=2)  # the recovery of a process that runs ends them each minute
PREFIX = "pgqueue_"


@dataclass(frozen=True, slots=True)
class InDoubt:
    """``tables``: schema.table where it has locks; none are told of another database than the queues'.

    ``waiting``: sessions that wait for its end, or for a table that it has locked.
    """

    name: str
    since: datetime
    age: timedelta
    owner: str
    database: str
    tables: tuple[str, ...]
    waiting: int

    @property
    def is_late(self) -> bool:
        return self.age > LATE

    @property
    def age_said(self) -> str:
        return durations.duration(self.age.total_seconds())

    @property
    def id(self) -> str:
        """As the endpoint's table of decisions has it."""
        return [*self.name.split("_"), "", ""][2]


def find(connection: Connection, now: datetime) -> list[InDoubt]:
    """The oldest, on the server of the queues, in whichever database of it. Raises DatabaseError."""
    rows = connection.all(postgresql().two_phase.in_doubt(most=MOST), {"prefix": PREFIX})
    return [_in_doubt(row, now) for row in rows]


def _in_doubt(row: Any, now: datetime) -> InDoubt:
    age = max(now - row.prepared, timedelta())
    return InDoubt(row.name, row.prepared, age, row.owner, row.database, tuple(row.tables), row.waiting)
