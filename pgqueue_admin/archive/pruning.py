"""What was decided long ago leaves the archive. What still waits for somebody never does."""

from datetime import datetime
from typing import NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

CHUNK = 1000  # rows a statement: each is a transaction of its own, and holds up nobody for long


class Filed(NamedTuple):
    """Events are in files that were visible in this snapshot, and are from before then (None: whenever they were)."""

    snapshot: str
    before: datetime | None


def prune(connection: Connection, before: datetime, read: str | None, filed: Filed | None = None) -> int:
    """Forget a chunk of what died and was decided before then; how many rows went, CHUNK when there may be more.

    ``read``: a snapshot of which history has read every row (None: no history is kept); later rows stay. ``filed``: and
    those stay that have other events than these. Events stay in any case: what was done is never forgotten.
    """
    snapshot, filed_before = filed or (None, None)
    about = {"before": before, "read": read, "filed": snapshot, "filed_before": filed_before, "most": CHUNK}
    return connection.run(postgresql().archive.prune(), about)
