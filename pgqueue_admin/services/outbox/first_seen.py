"""First-seen times for outbox tables that do not store since when a record waits: looks write them, pages read them."""

from collections.abc import Collection
from datetime import datetime

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import outbox_databases, outbox_first_seen
from pgqueue_admin.models.outbox_first_seen import MOST
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.services.outbox.switches import here

_SHOWN = 1_000  # of the records seen first, so many are checked for a page


def database_of(connection: Connection, table: Address) -> str:
    """Return the key of this table's database in stored times. Raises DatabaseError."""
    elsewhere = outbox_databases.of_table(table)
    return elsewhere.key if elsewhere else here(connection)


def follow(connection: Connection, database: str, table: Address) -> dict[str, datetime]:
    """Note waiting records, forget those sent or gone; return when each was first seen, by the console's clock.
    ``database``: from ``database_of``. Raises DatabaseError, or django.db.Error.
    """
    kept = connection.dialect.native(table)
    known = outbox_first_seen.since(database, kept)  # before listing: another process may note some meanwhile
    listed = outboxes.pending_ids(connection, table, MOST)
    gone = known.keys() - set(listed)
    if gone and len(listed) >= MOST:
        gone -= outboxes.still_pending(connection, table, gone)
    outbox_first_seen.forget(database, kept, gone)
    left = [each for each in known if each not in gone]
    return outbox_first_seen.note(database, kept, [*left, *(each for each in listed if each not in known)])


def seen_since(connection: Connection, database: str, table: Address) -> datetime | None:
    """Return when the first record still waiting was seen, by the console's clock; None: no look yet.

    Writes nothing. Raises DatabaseError.
    """
    known = outbox_first_seen.oldest(database, connection.dialect.native(table), _SHOWN)
    waiting = outboxes.still_pending(connection, table, known) if known else set()
    return min((at for each, at in known.items() if each in waiting), default=None)


def first_seen(connection: Connection, table: Address, records: Collection[str]) -> dict[str, datetime]:
    """Return when these records were first seen, if they were. Writes nothing. Raises DatabaseError."""
    if not records:
        return {}
    return outbox_first_seen.since(database_of(connection, table), connection.dialect.native(table), records)


def forget_what_is_not_followed(database: str, followed: Collection[Address]) -> None:
    """``followed``: tables that need first-seen times, and those that cannot be read now."""
    elsewhere = [each.key for each in outbox_databases.elsewhere()]
    outbox_first_seen.forget_other_databases([database, *elsewhere])
    for table in outbox_first_seen.tables(database) - set(followed):
        outbox_first_seen.forget_all(database, table)
