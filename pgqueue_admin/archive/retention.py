"""Deletes decided messages from the archive after the retention time; dead ones stay."""

from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

SILENT = timedelta(days=7)  # since it last said how far it is: from then on nobody waits for a console
CHUNK = 1000  # rows a statement: each is a transaction of its own, and holds up nobody for long


class FiledEvents(NamedTuple):
    """Events are in files that were visible in this snapshot, and are from before then (None: whenever they were)."""

    snapshot: str
    before: datetime | None


class Reader(NamedTuple):
    """A console that keeps history of the archive: when it last said how far it has read."""

    reader: str
    name: str
    said_at: datetime


def prune(
    connection: Connection, before: datetime, read: str | None, archive: str, filed: FiledEvents | None = None
) -> int:
    """Forget a chunk of what died and was decided before then; how many rows went, CHUNK when there may be more.

    ``read``: a snapshot of which history has read every row (None: no history is kept); later rows stay. ``filed``: and
    those stay that have other events than these. Events stay in any case: what was done is never forgotten. So does
    what another console has not read that has said within SILENT how far it is. ``archive``: the one that is meant.
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
    """Which archive it is, to all consoles: its server, the timeline of that, its table."""
    return f"{cluster}/{oid}"


def say_read(connection: Connection, reader: UUID, name: str, archive: str, read: str, filed: FiledEvents) -> None:
    """Tell all others how far this console has read; nothing, where the engine's tables are of version 1."""
    if connection.value(postgresql().archive.has_readers()):
        about = {"reader": reader, "name": name, "archive": archive, "snapshot": read}
        events = {"events_snapshot": filed.snapshot, "events_before": filed.before}
        connection.run(postgresql().archive.say_read(), {**about, **events})


def silent(connection: Connection) -> list[Reader]:
    """Those for which nobody waits any more, the longest silent first; none to whoever may not read of them."""
    if not connection.value(postgresql().archive.sees_readers()):
        return []
    return [Reader(*row) for row in connection.all(postgresql().archive.silent_readers(), {"silent": SILENT})]
