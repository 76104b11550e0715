"""Whether the queues that an endpoint is told to send to are there: a missing one would fail every message."""

from collections.abc import Iterable

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.records.models import Endpoint
from pgqueue_admin.records.source import source
from pgqueue_admin.transport.tables.table_checks import Fault, Table

QUEUES = ("error_queue", "audit_queue")


def faults(row: Endpoint, fields: Iterable[str] = QUEUES) -> dict[str, str]:
    """A sentence for each of these settings that names a table no message can be sent to. Reads the catalog alone."""
    named = {field: text for field in fields if (text := getattr(row, field))}
    try:
        return _faults(row, named) if named else {}
    except DatabaseError as error:
        return dict.fromkeys(named, f"Whether it is there cannot be looked up: {error}")


def _faults(row: Endpoint, named: dict[str, str]) -> dict[str, str]:
    of = source()
    with of.reading() as session:
        found = {field: _fault(session, of.dialect.parse_address(text, row.schema)) for field, text in named.items()}
    return {field: _said(fault) for field, fault in found.items() if fault}


def _fault(session: Connection, address: Address) -> Fault | None:
    return next((fault for fault in Table(session, source().dialect, address).as_queue(readable=False)), None)


def _said(fault: Fault) -> str:
    return f"{fault.said} Mended with: {' '.join(fault.cure.split())}"
