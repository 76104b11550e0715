"""Finds the session whose lock keeps readers from a table, as far as our role may see."""

from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.dialects import Address, Connection


@dataclass(frozen=True, slots=True)
class Holder:
    """``has_it``: it holds the lock; else it waits for the lock, and later sessions queue behind it."""

    pid: int | None  # None: a prepared transaction
    has_it: bool
    application: str
    user: str
    since: datetime | None  # start of its transaction; None if the role may not see it


def of(connection: Connection, table: Address) -> Holder | None:
    """None if no session does. Raises DatabaseError."""
    names = connection.dialect.native(table)._asdict()
    row = connection.one(connection.dialect.monitor.holders(), names)
    return Holder(row.pid, row.granted, row.application_name or "", row.user or "", row.since) if row else None
