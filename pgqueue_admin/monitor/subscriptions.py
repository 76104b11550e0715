"""Who receives which event: the subscription tables as they stand, and what is wrong with them (wire sheet 1.3, 4)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseDown, DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import HeadersUnreadable

MOST = 2_000
LOOKED_AT = 200  # so many of the newest of each audit queue
EVERYTHING = "System.Object"  # every published class derives from it
_PUBLISH = "Publish"


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """A row. ``queue`` is None where the address names none; ``is_there`` tells whether that table exists."""

    table: Address
    endpoint: str
    topic: str
    queueaddress: str  # exactly as it stands
    queue: Address | None = None
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionTables:
    """``unheard``: types of events published lately that nobody subscribes to now, of so many that were looked at."""

    tables: list[Address]
    rows: list[SubscriptionRow]
    unheard: list[str]
    looked_at: int
    unread: list[str]  # tables that could not be read


def find(connection: Connection, tables: Sequence[QueueTable]) -> SubscriptionTables:
    """Every subscription in the tables that were found. Raises DatabaseDown."""
    kept = [table.address for table in tables if table.kind is TableKind.SUBSCRIPTION]
    untouched = {table.address: table.why_unread for table in tables if table.why_unread}
    rows, unread = [], [f"{each.table}: {untouched[each]}" for each in kept if each in untouched]
    for table in (each for each in kept if each not in untouched):
        try:
            rows += _rows(connection, table)
        except DatabaseDown:
            raise
        except DatabaseError as error:
            unread.append(f"{table.table}: {error}")
    published = _published(
        connection, [table.address for table in tables if table.kind is TableKind.AUDIT and not table.why_unread]
    )
    return SubscriptionTables(kept, _judged(connection, rows), _unheard(published, rows), len(published), unread)


def _rows(connection: Connection, table: Address) -> list[SubscriptionRow]:
    found = connection.all(postgresql().subscription.rows(table=table, most=MOST))
    return [SubscriptionRow(table, each.endpoint, each.topic, each.queueaddress, _queue(each, table)) for each in found]


def _queue(row: object, table: Address) -> Address | None:
    try:
        return postgresql().parse_address(row.queueaddress, table.schema)  # type: ignore[attr-defined]
    except AddressUnreadable:
        return None


def _judged(connection: Connection, rows: list[SubscriptionRow]) -> list[SubscriptionRow]:
    queues = sorted({row.queue for row in rows if row.queue})
    asked = {"schemas": [each.schema for each in queues], "tables": [each.table for each in queues]}
    there = {Address(*row) for row in connection.all(postgresql().subscription.present(), asked)}
    return [
        SubscriptionRow(row.table, row.endpoint, row.topic, row.queueaddress, row.queue, row.queue in there)
        for row in rows
    ]


def _published(connection: Connection, audits: Iterable[Address]) -> list[Sequence[str]]:
    """The types of each event found, concrete first; an audit queue that cannot be read tells nothing."""
    found = []
    for table in audits:
        statement = postgresql().subscription.published(table=table, most=LOOKED_AT)
        try:
            found += [types for row in connection.all(statement) if (types := _types(row.headers))]
        except DatabaseDown:
            raise
        except DatabaseError:
            continue
    return found


def _types(text: str) -> Sequence[str]:
    try:
        headers = wire.parse(text)
    except HeadersUnreadable:
        return ()
    return wire.enclosed_types(headers) if headers.get(wire.MESSAGE_INTENT) == _PUBLISH else ()


def _unheard(published: list[Sequence[str]], rows: list[SubscriptionRow]) -> list[str]:
    heard = {row.topic for row in rows}
    if EVERYTHING in heard:
        return []
    return sorted({types[0] for types in published if not heard & set(types)})
