"""Whether the tables that an endpoint is told to write to are there: a missing one would fail every message."""

from collections.abc import Iterable, Iterator

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database

TABLES = ("error_queue", "audit_queue", "subscription_table")


def faults(row: Endpoint, fields: Iterable[str] = TABLES) -> dict[str, str]:
    """A sentence for each of these settings that names a table nothing can be written to. Reads the catalog alone."""
    named = {field: text for field in fields if (text := getattr(row, field))}
    try:
        return _faults(row, named) if named else {}
    except DatabaseError as error:
        return dict.fromkeys(named, f"Whether it is there cannot be looked up: {error}")


def _faults(row: Endpoint, named: dict[str, str]) -> dict[str, str]:
    of = queue_database()
    with of.reading() as session:
        found = {field: next(_looked_at(of, session, row, field), None) for field in named}
    return {field: _said(fault) for field, fault in found.items() if fault}


def _looked_at(of: QueueDatabase, session: Connection, row: Endpoint, field: str) -> Iterator[TableFault]:
    address = of.dialect.parse_address(getattr(row, field), row.schema)
    if field == "subscription_table":
        return of.dialect.subscription_store(address).faults(session)
    return of.dialect.queue_store(address).faults(session)


def _said(fault: TableFault) -> str:
    return f"{fault.said} Mended with: {' '.join(fault.cure.split())}"
