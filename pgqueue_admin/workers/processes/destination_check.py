"""Checks that the tables an endpoint writes to exist: a missing one would fail every message."""

from collections.abc import Iterable, Iterator

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database

TABLES = ("error_queue", "audit_queue", "subscription_table", "outbox")


def faults(row: Endpoint, fields: Iterable[str] = TABLES) -> dict[str, str]:
    """A sentence for each of these settings whose table cannot be written to. Reads only the catalog."""
    named = [field for field in fields if getattr(row, field) not in ("", Endpoint.Outbox.OFF)]
    try:
        return _faults(row, named) if named else {}
    except DatabaseError as error:
        return dict.fromkeys(named, f"Whether it is there cannot be looked up: {error}")


def _faults(row: Endpoint, named: list[str]) -> dict[str, str]:
    of = queue_database()
    with of.read_session() as session:
        found = {field: next(_looked_at(of, session, row, field), None) for field in named}
    return {field: _said(fault) for field, fault in found.items() if fault}


def _looked_at(of: QueueDatabase, session: Connection, row: Endpoint, field: str) -> Iterator[TableFault]:
    if field == "outbox":
        return _outbox(of, session, row)
    address = of.dialect.parse_address(getattr(row, field), row.schema)
    if field == "subscription_table":
        return of.dialect.subscription_store(address).faults(session)
    return of.dialect.queue_store(address).faults(session)


def _outbox(of: QueueDatabase, session: Connection, row: Endpoint) -> Iterator[TableFault]:
    try:
        address = of.dialect.outbox_address(row.name, row.schema)
    except AddressUnreadable as error:
        yield TableFault(f"{row.name} can have no outbox: {error}.", "an endpoint of a shorter name", stops=True)
        return
    if row.has_outbox:
        yield from of.dialect.outbox_store(address).faults(session)


def _said(fault: TableFault) -> str:
    return f"{fault.said} Mended with: {' '.join(fault.cure.split())}"
