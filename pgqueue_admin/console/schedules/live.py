"""Topic ``schedules``: live updates of the list, in the same cells as on the page."""

from django.template.loader import render_to_string

from pgqueue_admin.console import components
from pgqueue_admin.console.schedules import rows
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services.schedules import SchedulesMissing

CELLS = ("next", "last", "missed")


def live(_: str) -> dict[str, str]:
    """Empty while the queue database does not answer: the page stays as it was."""
    try:
        with queue_database().read_session() as connection:
            found, _looked = rows.load(connection)
    except (DatabaseError, SchedulesMissing):
        return {}
    said = {f"{row.key}.{name}": cell(row, name) for row in found for name in CELLS}
    said |= {f"{row.key}.tone": row.tone for row in found}
    state, sentence = rows.verdict(found)
    return {
        **said,
        **components.live_verdict("schedules.verdict", state, sentence),
        "@title": sentence,
        "@say": sentence,
    }


def cell(row: rows.ScheduleRow, name: str) -> str:
    return render_to_string(f"pgqueue_admin/schedules/{name}.html", {"row": row})
