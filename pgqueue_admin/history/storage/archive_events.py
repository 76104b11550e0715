"""Events of an archived message, from event files: available after the archive has deleted the message."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from pgqueue_admin.history.sources.tables import ARCHIVE
from pgqueue_admin.history.storage import message_lookup
from pgqueue_admin.history.storage.layout import folder
from pgqueue_admin.models import DataFile, HistorySource


class Event(NamedTuple):
    """An act on the message or its outcome: a row of ``messages.archive_event``, with the reason of its operation."""

    event: int
    archive_id: int
    at: datetime
    who: str
    verb: str
    operation: int | None
    target: str | None
    reason: str | None


class Resolution(NamedTuple):
    """``last``: the last day (UTC) whose events are in files; ``unread``: files not read in time."""

    events: list[Event]  # newest first
    last: date
    unread: int


def of(message: message_lookup.FinishedMessage) -> Resolution | None:
    """None: not from our archive, or no events are in files yet. Raises FilesUnreadable."""
    source = HistorySource.objects.filter(table=ARCHIVE).exclude(events_before=None).first()
    if message.source != ARCHIVE or source is None or source.events_before is None:
        return None
    last = (source.events_before - timedelta(days=1)).astimezone(UTC).date()
    paths = _paths(message.ended_at)
    if not paths:
        return Resolution([], last, 0)
    asked = {"paths": paths, "source": ARCHIVE, "seq": message.seq, "message_id": message.message_id}
    asked |= {"within": message_lookup.WITHIN}
    told = message_lookup.answered("events", asked)
    events = [Event(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in told["rows"]]
    events.sort(key=lambda event: (event.at, event.event), reverse=True)
    return Resolution(events, last, told["unread"])


def _paths(ended: datetime) -> list[str]:
    """Files from the day on which it ended, then earlier ones: another machine's clock set that time."""
    day = ended.astimezone(UTC).date()
    files: Any = DataFile.objects.filter(dataset=DataFile.Dataset.EVENTS).values_list("day", "path")
    return [str(folder() / path) for _, path in sorted(files, key=lambda file: (file[0] < day, file))]
