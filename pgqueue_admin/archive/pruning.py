"""What was decided long ago leaves the archive. What still waits for somebody never does."""

from datetime import datetime

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql

CHUNK = 1000  # rows a statement: each is a transaction of its own, and holds up nobody for long


def prune(connection: Connection, before: datetime, read: str | None) -> int:
    """Forget a chunk of what died and was decided before then; how many rows went, CHUNK when there may be more.

    ``read``: a snapshot of which history has read every row (None: no history is kept); later rows stay. Their events
    stay, too: what was done is never forgotten.
    """
    return connection.run(postgresql().archive.prune(), {"before": before, "read": read, "most": CHUNK})
