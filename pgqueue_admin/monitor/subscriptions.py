"""Who receives which event: the subscription tables, and their faults (wire sheet 1.3, 4)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pgqueue_admin.dialects import Address, Connection, Dialect, visible_queues
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseDown, DatabaseError
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import HeadersUnreadable

MOST = 2_000
MOST_NARROWED = 100_000  # before rows of other queues are removed: their number must not show
LOOKED_AT = 200  # newest messages read per audit queue
EVERYTHING = "System.Object"  # every published class derives from it
_PUBLISH = "Publish"


@dataclass(frozen=True, slots=True)
class SubscriptionRow:
    """A row. ``queue`` is None if the address is invalid; ``is_there``: whether its table exists. For another catalog,
    which is not read: None and True."""

    table: Address
    endpoint: str
    topic: str
    queueaddress: str  # exactly as stored
    queue: Address | None = None
    is_there: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionTables:
    """``unheard``: types of recently published events without a subscriber, among ``looked_at`` events.

    For users who see only some queues: only rows that deliver to these.
    """

    tables: list[Address]
    rows: list[SubscriptionRow]
    unheard: list[str]
    looked_at: int
    unread: list[str]  # tables that could not be read


def find(connection: Connection, tables: Sequence[QueueTable]) -> SubscriptionTables:
    """Every subscription in these tables. Raises DatabaseDown."""
    seen = visible_queues.current()
    kept = [table.address for table in tables if table.kind is TableKind.SUBSCRIPTION]
    untouched = {table.address: table.why_unread for table in tables if table.why_unread}
    rows, unread = [], [f"{each.table}: {untouched[each]}" for each in kept if each in untouched]
    for table in (each for each in kept if each not in untouched):
        try:
            rows += _rows(connection, table, MOST if seen is None else MOST_NARROWED)
        except DatabaseDown:
            raise
        except DatabaseError as error:
            unread.append(f"{table.table}: {error}")
    if seen is not None:
        return _seen(connection, rows, unread, seen)
    published = _published(
        connection, [table.address for table in tables if table.kind is TableKind.AUDIT and not table.why_unread]
    )
    return SubscriptionTables(kept, _judged(connection, rows), _unheard(published, rows), len(published), unread)


def _seen(
    connection: Connection, rows: list[SubscriptionRow], unread: list[str], seen: VisibleQueues
) -> SubscriptionTables:
    """Subscription tables belong to no queue, and published events to all: both are left out."""
    theirs = [row for row in rows if row.queue and seen.sees(row.queue)]
    untold = ["It may have more of these queues."] if unread else []
    return SubscriptionTables([], _judged(connection, theirs), [], 0, untold)


def together(found: Sequence[SubscriptionTables]) -> SubscriptionTables:
    """Combine several databases. An event unheard in one is listed even if another has subscribers."""
    return SubscriptionTables(
        [each for one in found for each in one.tables],
        [each for one in found for each in one.rows],
        sorted({each for one in found for each in one.unheard}),
        sum(one.looked_at for one in found),
        [each for one in found for each in one.unread],
    )


def _rows(connection: Connection, table: Address, most: int) -> list[SubscriptionRow]:
    dialect = connection.dialect
    found = connection.all(dialect.subscription.rows(table=table, most=most))
    return [
        SubscriptionRow(table, each.endpoint, each.topic, each.queueaddress, _queue(dialect, each.queueaddress, table))
        for each in found
    ]


def _queue(dialect: Dialect, said: str, table: Address) -> Address | None:
    """Parsed as that database's endpoints do."""
    try:
        return dialect.parse_address(said, dialect.native(table).schema)
    except AddressUnreadable:
        return None


def _judged(connection: Connection, rows: list[SubscriptionRow]) -> list[SubscriptionRow]:
    dialect = connection.dialect
    queues = sorted({row.queue for row in rows if row.queue})
    native = [dialect.native(each) for each in queues]
    asked = {"schemas": [each.schema for each in native], "tables": [each.table for each in native]}
    found = {Address(*row) for row in connection.all(dialect.subscription.present(), asked)}
    there = {queue for queue, name in zip(queues, native, strict=True) if name in found}
    return [
        replace(row, queue=None, is_there=True)
        if row.queue and _is_of_another_catalog(dialect, row.queue)
        else replace(row, is_there=row.queue in there)
        for row in rows
    ]


def _is_of_another_catalog(dialect: Dialect, queue: Address) -> bool:
    """Only schemas with a catalog are written in brackets."""
    return dialect.multi_catalog and dialect.native(queue).schema.startswith("[")


def _published(connection: Connection, audits: Iterable[Address]) -> list[Sequence[str]]:
    """The types of each event found, concrete first; unreadable audit queues are skipped."""
    found = []
    for table in audits:
        statement = connection.dialect.subscription.published(table=table, most=LOOKED_AT)
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
