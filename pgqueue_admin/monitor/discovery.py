"""Finds the queue tables of the allowed schemas (C2)."""

from collections.abc import Sequence
from dataclasses import replace

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import shapes
from pgqueue_admin.monitor.tables import Kind, QueueTable

Evidence = dict[Address, tuple[Kind, str] | None]


def find(connection: Connection, schemas: Sequence[str], known: Evidence | None = None) -> list[QueueTable]:
    """Every queue-shaped table, by schema and name. Asks the catalog once, then a few rows of those not told by name.

    ``known`` keeps what the messages of a table told, for a caller that asks again and again.
    """
    known = {} if known is None else known
    return paired([_by_evidence(connection, table, known) for table in _catalog(connection, schemas)])


def find_one(connection: Connection, address: Address) -> QueueTable | None:
    """One table, or None where it is gone or no queue. Reads the catalog only of what shares its name."""
    family = paired(_catalog(connection, [address.schema], address.table))
    found = next((table for table in family if table.address == address), None)
    return _by_evidence(connection, found, {}) if found else None


def paired(tables: Sequence[QueueTable]) -> list[QueueTable]:
    """A delayed table is named after its endpoint, whose input queue lies in the same schema (wire sheet 1.2)."""
    queues = {table.address for table in tables if table.has_messages}
    of = {t.address: base for t in tables if t.kind is Kind.DELAYED and (base := _base(t.address)) in queues}
    delayed = {base: address for address, base in of.items()}
    return [replace(t, delayed=delayed.get(t.address), delayed_of=of.get(t.address)) for t in tables]


def _base(address: Address) -> Address:
    return Address(address.schema, address.table.rpartition(".")[0])


def _catalog(connection: Connection, schemas: Sequence[str], family: str | None = None) -> list[QueueTable]:
    rows = connection.all(postgresql().monitor.tables(), {"schemas": list(schemas), "family": family})
    return [QueueTable.from_catalog(row, *judged) for row in rows if (judged := shapes.judge(row))]


def _by_evidence(connection: Connection, table: QueueTable, known: Evidence) -> QueueTable:
    """Error and audit queues may have any name. A table that cannot be read is taken for what it looks like."""
    if table.kind is not Kind.INPUT:
        return table
    if table.address not in known:
        known[table.address] = _evidence(connection, table)
    kind, reason = known[table.address] or (table.kind, table.reason)
    return replace(table, kind=kind, reason=reason)


def _evidence(connection: Connection, table: QueueTable) -> tuple[Kind, str] | None:
    try:
        return shapes.by_evidence(connection.one(postgresql().monitor.evidence(table=table.address)))
    except DatabaseDown:
        raise
    except DatabaseError:
        return None
