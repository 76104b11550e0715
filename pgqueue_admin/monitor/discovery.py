"""Finds the queue tables of the allowed schemas (C2)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pgqueue_admin.dialects import Address, Connection, Dialect, visible_queues
from pgqueue_admin.dialects.connection import Row
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError, Locked, NotLookedInto
from pgqueue_admin.monitor import batch_query, table_classifier
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind

Evidence = dict[Address, tuple[TableKind, str] | None]


class Unwatched(NamedTuple):
    """A schema that is not configured, and how many queue-shaped tables it has."""

    schema: str
    tables: int


def find(
    connection: Connection,
    schemas: Sequence[str],
    known: Evidence | None = None,
    doubted: Collection[Address] = (),
) -> list[QueueTable]:
    """Every queue-shaped table, by schema and name. Queries the catalog once, then a few rows of tables whose name does
    not tell.

    ``known`` caches what each table's messages showed, for repeated calls; entries checked longest ago come first.
    Tables in ``doubted`` are checked again.
    """
    return paired(_by_evidence(connection, _catalog(connection, schemas), {} if known is None else known, doubted))


def by_shape(connection: Connection, schemas: Sequence[str]) -> list[QueueTable]:
    """As ``find``, by columns and names only: an error or audit queue with an unusual name counts as an input queue."""
    return paired(_catalog(connection, schemas))


def find_one(connection: Connection, address: Address) -> QueueTable | None:
    """One table, or None if it is gone or no queue. Reads the catalog only for tables sharing its name. Raises Locked,
    because any following query would wait as long."""
    family = paired(_catalog(connection, [connection.dialect.native(address).schema], address.table))
    found = [table for table in family if table.address == address]
    return next(iter(_by_evidence(connection, found, {}, raising=(Locked,))), None)


def readable(connection: Connection, address: Address) -> QueueTable | None:
    """As ``find_one``. Raises NotLookedInto if reading it would run other roles' code."""
    found = find_one(connection, address)
    if found and found.why_unread:
        raise NotLookedInto(found.why_unread)
    return found


def unwatched(connection: Connection, schemas: Sequence[str]) -> list[Unwatched]:
    """Other schemas with queue-shaped tables, most first. Queries the catalog once, and no table."""
    return [
        Unwatched(*row) for row in connection.all(connection.dialect.monitor.unwatched(), {"schemas": list(schemas)})
    ]


def paired(tables: Sequence[QueueTable]) -> list[QueueTable]:
    """Link each delayed table and its endpoint's input queue with each other."""
    of = queues_of(
        [table.address for table in tables if table.kind is TableKind.DELAYED],
        {table.address for table in tables if table.is_counted},
    )
    delayed = {base: address for address, base in of.items()}
    return [replace(t, delayed=delayed.get(t.address), delayed_of=of.get(t.address)) for t in tables]


def queues_of(delayed: Collection[Address], queues: Collection[Address]) -> dict[Address, Address]:
    """The queue that each delayed table is named after, usually in the same schema (wire sheet 1.2).

    If only one of the two has a configured schema, it is the only unpaired queue with that name.
    """
    known = set(queues)
    of = {each: base for each in delayed if (base := _base(each)) in known}
    lone = _once({each: _base(each).table for each in delayed if each not in of})
    free = _once({each: each.table for each in known - set(of.values())})
    return of | {lone[name]: free[name] for name in lone.keys() & free.keys()}


def _once(names: Mapping[Address, str]) -> dict[str, Address]:
    """By name, the tables whose name is unique."""
    times = Counter(names.values())
    return {name: address for address, name in names.items() if times[name] == 1}


def _base(address: Address) -> Address:
    return Address(address.schema, address.table.rpartition(".")[0])


def _catalog(connection: Connection, schemas: Sequence[str], family: str | None = None) -> list[QueueTable]:
    monitor = connection.dialect.monitor
    asked = (monitor.tables(), {"schemas": list(schemas), "family": family})
    rows, calls = connection.batch([asked, (monitor.calls(), None)])
    by_oid = {row.oid: row.name for row in calls}
    judged = ((row, table_classifier.judge(row)) for row in rows)
    named = (_named(connection.dialect, row, told, by_oid.get(row.oid, "")) for row, told in judged if told)
    seen = visible_queues.current()
    return [table for table in named if table and (seen is None or seen.sees(table.address))]


def _named(dialect: Dialect, row: Row, told: tuple[TableKind, str], calls: str) -> QueueTable | None:
    """None if no address can hold its name: nobody can send there."""
    try:
        return QueueTable.from_catalog(dialect, row, *told, calls)
    except AddressUnreadable:
        return None


def calls(connection: Connection) -> dict[int, str]:
    """By table oid, another role's function that planning a query on it would run."""
    return {row.oid: row.name for row in connection.all(connection.dialect.monitor.calls())}


def _by_evidence(
    connection: Connection,
    tables: Sequence[QueueTable],
    known: Evidence,
    doubted: Collection[Address] = (),
    raising: tuple[type[DatabaseError], ...] = (),
) -> list[QueueTable]:
    """Detect error and audit queues by their messages: they may have any name. An unreadable table keeps its kind."""
    inputs = [table.address for table in tables if table.kind is TableKind.INPUT and not table.why_unread]
    asked = [address for address in inputs if address not in known or address in doubted]
    for address, found in zip(asked, _evidence(connection, asked, raising), strict=True):
        told = known.pop(address, None)
        known[address] = (
            table_classifier.by_evidence(found, told) if found and found.rows else told
        )  # an empty table shows nothing new
    return [_as_known(table, known.get(table.address)) if table.kind is TableKind.INPUT else table for table in tables]


def _as_known(table: QueueTable, told: tuple[TableKind, str] | None) -> QueueTable:
    kind, reason = told or (table.kind, table.reason)
    return replace(table, kind=kind, reason=reason)


def _evidence(
    connection: Connection, tables: Sequence[Address], raising: tuple[type[DatabaseError], ...]
) -> list[Row | None]:
    """None for unreadable tables. Raises the errors in ``raising``."""
    evidence = connection.dialect.monitor.evidence
    answers = list(batch_query.ask(connection, [(evidence(table=table), None) for table in tables]))
    if refused := next((each for each in answers if isinstance(each, raising)), None):
        raise refused
    return [None if isinstance(rows, DatabaseError) else rows[0] for rows in answers]
