"""Topic ``failures:<fingerprint>,…``: figures and states of the failures that a page shows, as on the page."""

from django.template.loader import render_to_string

from pgqueue_admin.archive import failure_groups
from pgqueue_admin.archive.fingerprints import are_kept
from pgqueue_admin.console.failures import rows
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.dialects import Connection, deadline
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.fingerprint import is_fingerprint
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.failure_group import words_of
from pgqueue_admin.models.queue_database import queue_database

SECONDS = 1.0  # in an archive where counting takes longer the page stays as it was
CELLS = ("dead", "count", "died_recently", "last", "state")


def shown(said: str) -> str | None:
    """The fingerprints of a page, in one order."""
    digests = sorted(set(filter(None, said.split(","))))
    return ",".join(digests) if 0 < len(digests) <= rows.PAGE and all(map(is_fingerprint, digests)) else None


def live(said: str) -> dict[str, str]:
    try:
        with deadline.within(SECONDS), queue_database().reading() as connection:
            found = _read(connection, said.split(","))
    except DatabaseError:
        return {}
    drawn = {f"f{row.fingerprint}.{name}": cell(row, name) for row in found for name in CELLS}
    return drawn | {f"f{row.fingerprint}.tone": row.tone for row in found}


def _read(connection: Connection, digests: list[str]) -> list[FailureRow]:
    if not are_kept(connection):
        return []
    known, now = words_of(digests), database_clock.now()
    return [rows.judged(each, known.get(each.fingerprint), now) for each in failure_groups.some(connection, digests)]


def cell(row: FailureRow, name: str) -> str:
    return render_to_string(f"pgqueue_admin/failures/{name}.html", {"row": row})
