"""Finds the session that keeps readers from a table, as far as our role may know."""

from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.dialects import Address, Connection


@dataclass(frozen=True, slots=True)
class Holder:
    """``has_it``: else it waits for the lock itself, and whoever comes later waits behind it."""

    pid: int | None  # None: a prepared transaction
    has_it: bool
    application: str
    user: str
    since: datetime | None  # its transaction; None where the role may not see it


def of(connection: Connection, table: Address) -> Holder | None:
    """None where nobody does. Raises DatabaseError."""
    names = connection.dialect.native(table)._asdict()
    row = connection.one(connection.dialect.monitor.holders(), names)
    return Holder(row.pid, row.granted, row.application_name or "", row.user or "", row.since) if row else None
