"""Live updates of one message's open page: its state since the page was loaded."""

from functools import lru_cache
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import archive_id_of
from pgqueue_admin.console import components
from pgqueue_admin.console.archive import search
from pgqueue_admin.console.messages.detail import summary, timeline
from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError, TableMissing
from pgqueue_admin.formatting import escape_invisible, times
from pgqueue_admin.models import Queue, database_clock
from pgqueue_admin.models.queue_database import database_of, is_watched, queue_database
from pgqueue_admin.monitor import browse
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations import queries
from pgqueue_admin.transport.wire.type_names import short_type

GONE = "gone"  # removed from the archive


def archived_topic(archive_id: int, zone: str) -> str:
    return f"message:{archive_id}:{zone}"


def waiting_topic(table: QueueTable, row_id: str) -> str:
    """Empty without a primary key (checks would read the whole table), or for an unknown queue."""
    queue = Queue.objects.filter(schema=table.address.schema, table=table.address.table).first()
    return f"waiting:{queue.pk}:{row_id}" if queue and table.has_primary_key else ""


def archived_argument(said: str) -> str | None:
    """Parse ``418:Europe/Berlin``; None if invalid."""
    number, _, zone = said.partition(":")
    archive_id = archive_id_of(number.lstrip("0"))
    return f"{archive_id}:{times.zone(zone)}" if archive_id else None


def waiting_argument(said: str) -> str | None:
    """Parse the number of a queue and the id of a row; None if invalid."""
    number, _, row_id = said.partition(":")
    try:
        return f"{parse_int(number)}:{UUID(row_id)}" if parse_int(number) is not None else None
    except ValueError:
        return None


def archived(said: str) -> dict[str, str]:
    """Topic ``message:418:Europe/Berlin``: its state, its timeline, and a notice for pages loaded in another state.

    Empty while the archive does not answer: the page keeps what it has.
    """
    number, _, zone = said.partition(":")
    try:
        with queue_database().read_session() as connection:
            row = store.followed(connection, int(number))
    except DatabaseError:
        return {}
    if row is not None and (seen := visible_queues.current()) and not seen.sees_name(row.queue):
        return {}
    with timezone.override(times.zone(zone)):
        return _removed() if row is None else _now(row, zone)


def waiting(said: str) -> dict[str, str]:
    """Topic ``waiting:3:ab91…``: a notice once the message has left its queue."""
    number, _, row_id = said.partition(":")
    queue = Queue.objects.filter(pk=int(number)).first()
    if queue is None:
        return {}
    address = Address(queue.schema, queue.table)
    try:
        with database_of(address).read_session() as connection:
            there = is_watched(address) and browse.is_there(connection, address, row_id)
    except TableMissing:
        there = False
    except DatabaseError:
        return {}
    if there:
        return {"message.left": "", "@say": ""}
    told = f"It is no longer in {escape_invisible.plain(queue.table)}: received, moved or removed."
    return {"message.left": _notice(told, reverse("find_message", args=[row_id]), "Find it"), "@say": told}


def _now(row: Any, zone: str) -> dict[str, str]:
    word = summary.STATE_WORDS.get(row.state, row.state)
    by = format_html(' <span class="small soft">{}, {}</span>', summary.done_by(row), components.ago(row.resolved_at))
    name = short_type(row.message_type) if row.message_type else "Message of unknown type"
    where = f" in {labels.table_of(row.queue)}" if row.queue else ""
    return {
        "message.state": format_html("{}{}", components.state(word, row.state), by if row.resolved_by else ""),
        "message.steps": _steps_now(row.id, zone, (row.state, row.resolved_at, row.ended_at)),
        "@title": escape_invisible.plain(f"{name}, {word}{where}"),
        "@say": f"This message is {word}",
        **_changed(row.state, f"This message is {word} now."),
    }


def _removed() -> dict[str, str]:
    return {"message.state": components.state(GONE), **_changed(GONE, "This message was removed from the archive.")}


def _changed(state: str, told: str) -> dict[str, str]:
    """Per state that a page was loaded with: if outdated, a notice and no buttons."""
    said = {}
    for shown in search.STATES:
        over = shown != state
        said[f"message.was.{shown}"] = _notice(told, "", "Load it again") if over else ""
        said[f"message.acts.{shown}"] = "off" if over else "acts"
    return said


def _notice(told: str, url: str, word: str) -> SafeString:
    """A notice with a link; an empty address is the page's own."""
    return format_html('{}<div>{}</div><a href="{}">{}</a>', components.icon("info"), told, url, word)


def _steps_now(archive_id: int, zone: str, version: tuple[Any, ...]) -> str:
    """Skip the cache under a queue scope: the operations named depend on what the user may see."""
    made = _steps if visible_queues.current() is None else _steps.__wrapped__
    return made(archive_id, zone, version)


@lru_cache(maxsize=256)
def _steps(archive_id: int, zone: str, version: tuple[Any, ...]) -> str:
    """Render once for each ``version`` and for all viewers, so without message content. Raises DatabaseError."""
    with queue_database().read_session() as connection:
        message = store.show(connection, archive_id)
        events = store.events(connection, archive_id)
    if message is None:
        return ""
    about = {
        "steps": timeline.steps(summary.of_archived(message, content_access.NOTHING), events, database_clock.now()),
        "started_here": queries.started_here(event.operation for event in events),
    }
    return render_to_string("pgqueue_admin/messages/detail/steps.html", about)
