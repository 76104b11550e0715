"""Events of archived messages in the open format, by finished day. Without Spark."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import xid_continuity
from pgqueue_admin.history.sources.tables import ARCHIVE, SNAPSHOTS, is_held
from pgqueue_admin.history.storage import orphan_cleanup
from pgqueue_admin.history.storage.layout import gone_if_it_fails, of_events, settle
from pgqueue_admin.models import DataFile, HistorySource, Operation
from pgqueue_admin.models.time_grains import midnight

log = logging.getLogger(__name__)
COLUMNS = (
    "source", "seq", "archive_id", "message_id", "event", "at", "who", "verb", "operation", "target", "reason",
)  # fmt: skip
_NUMBERS = ("seq", "archive_id", "event", "operation")
_DAY = timedelta(days=1)


class _To(NamedTuple):
    """All visible in ``snapshot``: when it was taken, and the WAL position at that time."""

    snapshot: str
    at: datetime
    written: int


def keep(connection: Connection, folder: Path) -> int:
    """Write the events of the oldest finished day that are in no file yet; return their number.

    Late commits go into another file of their day. Call again until it returns 0; then nothing is searched before the
    next midnight. ``connection``: to the queues. Raises database errors.
    """
    source = HistorySource.objects.filter(table=ARCHIVE, cursor_kind=SNAPSHOTS, exists=True).first()
    if source is None or is_held(source):
        return 0
    now = connection.all(_sql().instant())[0]
    today = midnight(_day(now.at))
    is_done = source.events_before is not None and source.events_before >= today
    if is_done or not xid_continuity.is_known(connection, source):
        return 0
    to = _To(now.snapshot, now.at, xid_continuity.written(connection))
    before, files = _file(connection, source, to, today, folder)
    try:
        _commit(source, to, before, files, folder)
    except ledger.Superseded as other:  # another driver was faster
        log.info("History: %s", other)
        return 0
    for file in files:
        log.info("History: what became of messages on %s, %s events.", file.day, file.rows)
    return sum(file.rows for file in files)


def _file(
    connection: Connection, source: HistorySource, to: _To, today: datetime, folder: Path
) -> tuple[datetime, list[DataFile]]:
    """The midnight up to which events are now in files, and these files, not in the manifest yet."""
    with ExitStack() as gone:
        with connection.transaction():
            connection.run(_sql().patiently())
            before, params = _next(connection, source, to.snapshot, today)
            written = _write(_parts(connection, params) if params else [], folder, gone)
        settle(folder, [path for path, _ in written.values()])
        return before, [_named(source, folder, path, day, rows) for day, (path, rows) in written.items()]


def _next(
    connection: Connection, source: HistorySource, snapshot: str, today: datetime
) -> tuple[datetime, dict[str, Any] | None]:
    """The next midnight, and the parameters of events_read; None: there are no events."""
    begin, done = source.events_snapshot or ledger.BEFORE_ALL, source.events_before
    params: dict[str, Any] = {"a": begin, "filed": done, "b": snapshot, "end": today}
    first = connection.value(_sql().events_first(events_not_filed=_sql().events_not_filed), params)
    if first is None:
        return today, None
    end = midnight(_day(first)) + _DAY
    end = max(end, done) if done else end  # late events are from before that
    return end, params | {"end": end}


def _parts(connection: Connection, params: dict[str, Any]) -> Iterator[list[Any]]:
    known = {**params, "names": settings.PGQUEUE["MASKED_HEADERS"]}
    connection.run(_sql().events_read(events_not_filed=_sql().events_not_filed), known)
    while rows := connection.all(_sql().events_part()):
        yield rows


def _write(parts: Iterable[list[Any]], folder: Path, gone: ExitStack) -> dict[date, tuple[Path, int]]:
    """A file per day, ordered by seq, and the number of its events."""
    paths, number, opened = dict[date, Path](), Counter[date](), dict[date, Any]()
    with ExitStack() as open_files:
        for rows in parts:
            reasons = _reasons(rows)
            for day, events in groupby(sorted(rows, key=lambda row: _day(row.at)), key=lambda row: _day(row.at)):
                if day not in paths:
                    paths[day] = of_events(folder, day, orphan_cleanup.noted())
                    gone.enter_context(gone_if_it_fails(paths[day].parent))
                    opened[day] = open_files.enter_context(_opened(paths[day]))
                table = _table(list(events), reasons)
                opened[day].write_table(table)
                number[day] += table.num_rows
    return {day: (path, number[day]) for day, path in paths.items()}


def _reasons(rows: list[Any]) -> dict[int, str]:
    return dict(Operation.objects.filter(pk__in={row.operation for row in rows}).values_list("pk", "reason"))


def _commit(source: HistorySource, to: _To, before: datetime, files: list[DataFile], folder: Path) -> None:
    """Commit. If the answer is lost, the files may be history: only Superseded allows their deletion."""
    try:
        ledger.filed(source, to, before, files)
    except ledger.Superseded:
        for file in files:
            (folder / file.path).unlink()
        raise


def _named(source: HistorySource, folder: Path, path: Path, day: date, rows: int) -> DataFile:
    place, size, dataset = str(path.relative_to(folder)), path.stat().st_size, DataFile.Dataset.EVENTS
    return DataFile(source=source, dataset=dataset, path=place, day=day, rows=rows, bytes=size)


def _opened(path: Path) -> Any:
    import pyarrow.parquet

    path.parent.mkdir(parents=True)
    return pyarrow.parquet.ParquetWriter(path, _schema(), compression="zstd")


def _table(events: list[Any], reasons: dict[int, str]) -> Any:
    import pyarrow as pa

    rows = [{**row._asdict(), "source": ARCHIVE, "reason": reasons.get(row.operation) or None} for row in events]
    return pa.Table.from_pylist(rows, schema=_schema())


def _schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        dict.fromkeys(COLUMNS, pa.string()) | dict.fromkeys(_NUMBERS, pa.int64()) | {"at": pa.timestamp("us", "UTC")}
    )


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _sql() -> Any:
    return postgresql().history
