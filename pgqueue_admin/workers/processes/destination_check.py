"""Whether the tables that an endpoint is told to write to are there: a missing one would fail every message."""

from collections.abc import Iterable, Iterator

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.tables.table_checks import ExpectedTable, TableFault

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
        tables = {
            field: ExpectedTable(session, of.dialect, of.dialect.parse_address(named[field], row.schema))
            for field in named
        }
        found = {field: next(_looked_at(field, table), None) for field, table in tables.items()}
    return {field: _said(fault) for field, fault in found.items() if fault}


def _looked_at(field: str, table: ExpectedTable) -> Iterator[TableFault]:
    return table.as_subscriptions() if field == "subscription_table" else table.as_queue(readable=False)


def _said(fault: TableFault) -> str:
    return f"{fault.said} Mended with: {' '.join(fault.cure.split())}"
