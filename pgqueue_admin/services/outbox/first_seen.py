"""Outbox tables that do not say since when a record waits: who looks writes it down, who shows it reads it."""

from collections.abc import Collection
from datetime import datetime

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import outbox_databases, outbox_first_seen
from pgqueue_admin.models.outbox_first_seen import MOST
from pgqueue_admin.monitor import outboxes
from pgqueue_admin.services.outbox.switches import here

_SHOWN = 1_000  # of those that were seen first, which of them still wait is asked for a page


def database_of(connection: Connection, table: Address) -> str:
    """As what is remembered of this table is kept. Raises DatabaseError."""
    elsewhere = outbox_databases.of_table(table)
    return elsewhere.key if elsewhere else here(connection)


def follow(connection: Connection, database: str, table: Address) -> dict[str, datetime]:
    """What waits is noted, what was sent or is gone is forgotten. Since when each is seen, by the console's clock.

    ``database``: as ``database_of`` says it. Raises DatabaseError, or django.db.Error.
    """
    kept = connection.dialect.native(table)
    known = outbox_first_seen.since(database, kept)  # before what waits is listed: somebody may note some meanwhile
    listed = outboxes.pending_ids(connection, table, MOST)
    gone = known.keys() - set(listed)
    if gone and len(listed) >= MOST:
        gone -= outboxes.still_pending(connection, table, gone)
    outbox_first_seen.forget(database, kept, gone)
    left = [each for each in known if each not in gone]
    return outbox_first_seen.note(database, kept, [*left, *(each for each in listed if each not in known)])


def seen_since(connection: Connection, database: str, table: Address) -> datetime | None:
    """When the first of those that still wait was seen, by the console's clock; None: nobody has looked yet.

    Writes nothing. Raises DatabaseError.
    """
    known = outbox_first_seen.oldest(database, connection.dialect.native(table), _SHOWN)
    waiting = outboxes.still_pending(connection, table, known) if known else set()
    return min((at for each, at in known.items() if each in waiting), default=None)


def first_seen(connection: Connection, table: Address, records: Collection[str]) -> dict[str, datetime]:
    """When these were seen first, as far as anybody looked. Writes nothing. Raises DatabaseError."""
    if not records:
        return {}
    return outbox_first_seen.since(database_of(connection, table), connection.dialect.native(table), records)


def forget_what_is_not_followed(database: str, followed: Collection[Address]) -> None:
    """``followed``: the tables that need it, and those that cannot be read now."""
    elsewhere = [each.key for each in outbox_databases.elsewhere()]
    outbox_first_seen.forget_other_databases([database, *elsewhere])
    for table in outbox_first_seen.tables(database) - set(followed):
        outbox_first_seen.forget_all(database, table)
