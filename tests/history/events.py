"""Events of archived messages on other days than today, and their files."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.history.storage import event_files
from pgqueue_admin.models import DataFile, HistorySource

DAY = timedelta(days=1)


def buried(connection: Connection, **about: Any) -> int:
    return store.archive_failed(connection, DeadMessage(**{"queue": "q", "result": "failed", "headers": "{}", **about}))


def event(connection: Connection, archive_id: int, days: int = -2, verb: str = "discarded") -> None:
    """Insert an event as an act does, at noon of another day (UTC); a trigger forbids changing it afterwards."""
    connection.run(
        "insert into messages.archive_event (archive_id, who, verb, at)"
        " values (%s, 'ana', %s, date_trunc('day', now()) + make_interval(days => %s, hours => 12))",
        [archive_id, verb, days],
    )


def moved_back(connection: Connection, days: int) -> None:
    """Move all events back by so many days, past the trigger, which replication does not fire."""
    with connection.transaction():
        connection.run("set local session_replication_role = replica")
        connection.run("update messages.archive_event set at = at - make_interval(days => %s)", [days])


def midnight_passes() -> None:
    """Move the last filing to yesterday. No filed event may be from yesterday."""
    HistorySource.objects.exclude(events_before=None).update(events_before=midnight(-1))


def midnight(days: int) -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + days * DAY


def kept(connection: Connection, folder: Path) -> int:
    """File all events; return how many."""
    rows = 0
    while found := event_files.keep(connection, folder):
        rows += found
    return rows


def filed(folder: Path) -> dict[date, list[tuple[int | None, str]]]:
    """Numbers and verbs of each day in the manifest, in file order."""
    found: dict[date, list[tuple[int | None, str]]] = {}
    for file in DataFile.objects.filter(dataset="events").order_by("pk"):
        rows = pyarrow.parquet.read_table(folder / file.path).to_pylist()
        assert (len(rows), {row["at"].date() for row in rows}) == (file.rows, {file.day})
        assert file.day
        found.setdefault(file.day, []).extend((row["seq"], row["verb"]) for row in rows)
    return found
