"""Topic ``failures:<fingerprint>,…``: figures and states of the failures that a page shows."""

from pgqueue_admin.archive import failure_groups
from pgqueue_admin.archive.fingerprints import are_kept
from pgqueue_admin.console.failures import cells, rows
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.dialects import Connection, deadline
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.fingerprint import is_fingerprint
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.failure_group import words_of
from pgqueue_admin.models.queue_database import queue_database

SECONDS = 1.0  # if counting takes longer, the page keeps its figures


def shown(said: str) -> str | None:
    """The fingerprints of a page, sorted; None if one is invalid or there are too many."""
    digests = sorted(set(filter(None, said.split(","))))
    return ",".join(digests) if 0 < len(digests) <= rows.PAGE and all(map(is_fingerprint, digests)) else None


def live(said: str) -> dict[str, str]:
    try:
        with deadline.within(SECONDS), queue_database().read_session() as connection:
            found = _read(connection, said.split(","))
    except DatabaseError:
        return {}
    drawn = {f"f{row.fingerprint}.{name}": str(cell(row)) for row in found for name, cell in cells.LIVE.items()}
    return drawn | {f"f{row.fingerprint}.tone": row.tone for row in found}


def _read(connection: Connection, digests: list[str]) -> list[FailureRow]:
    if not are_kept(connection):
        return []
    known, now = words_of(digests), database_clock.now()
    return [rows.judged(each, known.get(each.fingerprint), now) for each in failure_groups.some(connection, digests)]
