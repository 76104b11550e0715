"""Deletes resolved messages from the archive after the retention time; dead ones stay."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

SILENT = timedelta(days=7)  # after so long without a progress report, retention stops waiting for a console
CHUNK = 1000  # rows per statement: each is a transaction of its own, with short locks


class FiledEvents(NamedTuple):
    """Events in history's files: visible in this snapshot, and older than ``before`` (None: of any age)."""

    snapshot: str
    before: datetime | None


class Reader(NamedTuple):
    """A console that keeps history of the archive, with the time of its last progress report."""

    reader: str
    name: str
    said_at: datetime


def prune(
    connection: Connection, before: datetime, read: str | None, archive: str, filed: FiledEvents | None = None
) -> int:
    """Delete a chunk of messages that died and were resolved before then. Return the number of rows; CHUNK if there may
    be more.

    ``read``: a snapshot whose rows history has read (None: no history is kept); later rows stay. ``filed``: rows with
    events outside these stay, too. Rows stay that another console has not read, if it reported progress within SILENT.
    Events are never deleted. ``archive``: the archive's identity (``as_of``).
    """
    snapshot, filed_before = filed or (None, None)
    about = {"before": before, "read": read, "filed": snapshot, "filed_before": filed_before}
    statements = postgresql().archive
    others = statements.read_by_others if connection.value(statements.has_readers()) else statements.nobody_else
    settled = statements.is_settled if crossings.are_kept(connection) else statements.nobody_else
    return connection.run(
        statements.prune(read_by_others=others, is_settled=settled),
        {**about, "archive": archive, "silent": SILENT, "most": CHUNK},
    )


def as_of(cluster: str, oid: int | None) -> str:
    """The archive's identity for all consoles: server, timeline, table."""
    return f"{cluster}/{oid}"


def say_read(connection: Connection, reader: UUID, name: str, archive: str, read: str, filed: FiledEvents) -> None:
    """Tell other consoles how far this one has read; no effect if the engine's tables are of version 1."""
    if connection.value(postgresql().archive.has_readers()):
        about = {"reader": reader, "name": name, "archive": archive, "snapshot": read}
        events = {"events_snapshot": filed.snapshot, "events_before": filed.before}
        connection.run(postgresql().archive.say_read(), {**about, **events})


def silent(connection: Connection) -> list[Reader]:
    """Consoles that retention no longer waits for, longest silent first; empty if the role may not read them."""
    if not connection.value(postgresql().archive.sees_readers()):
        return []
    return [Reader(*row) for row in connection.all(postgresql().archive.silent_readers(), {"silent": SILENT})]
