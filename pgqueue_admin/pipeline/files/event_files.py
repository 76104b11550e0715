"""What became of archived messages, in the open format: the events of each day that is over. Without Spark."""

import logging
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.files.places import gone_if_it_fails, of_events, settle
from pgqueue_admin.pipeline.plan import transactions
from pgqueue_admin.pipeline.sources.tables import ARCHIVE, SNAPSHOTS, is_held
from pgqueue_admin.records.models import HistoryFile, HistorySource, Operation
from pgqueue_admin.records.steps import midnight

log = logging.getLogger(__name__)
COLUMNS = (
    "source", "seq", "archive_id", "message_id", "event", "at", "who", "verb", "operation", "target", "reason",
)  # fmt: skip
_NUMBERS = ("seq", "archive_id", "event", "operation")
_DAY = timedelta(days=1)
_GROUP = 20_000  # rows that a look for one message has to read


class _To(NamedTuple):
    """All that was visible in ``snapshot``: when that was, and how far the server's log was written by then."""

    snapshot: str
    at: datetime
    written: int


def keep(connection: Connection, folder: Path) -> int:
    """The oldest day that is over and has events in no file yet gets one; how many events that were.

    What committed late goes into one more file of its day. Call it again until none is left: that is known then, too,
    and nobody looks for more before the next midnight. ``connection``: to the queues. Raises what databases raise.
    """
    source = HistorySource.objects.filter(table=ARCHIVE, way=SNAPSHOTS, is_there=True).first()
    if source is None or is_held(source):
        return 0
    now = connection.all(_sql().instant())[0]
    today = midnight(_day(now.at))
    is_done = source.events_before is not None and source.events_before >= today
    if is_done or not transactions.is_known(connection, source):
        return 0
    to = _To(now.snapshot, now.at, transactions.written(connection))
    end, rows = _next(connection, source, to.snapshot, today)
    try:
        _file(source, to, end, rows, folder)
    except ledger.Superseded as other:  # another driver was faster
        log.info("History: %s", other)
        return 0
    return len(rows)


def _next(connection: Connection, source: HistorySource, snapshot: str, today: datetime) -> tuple[datetime, list[Any]]:
    """Up to which midnight events are in files after this, and the events for that."""
    begin, done = source.events_snapshot or ledger.BEFORE_ALL, source.events_before
    params: dict[str, Any] = {"a": begin, "filed": done, "b": snapshot, "end": today}
    part = {"events_not_filed": _sql().events_not_filed}
    with connection.transaction():
        connection.run(_sql().patiently())
        first = connection.value(_sql().events_first(**part), params)
        if first is None:
            return today, []
        end = midnight(_day(first)) + _DAY
        end = max(end, done) if done else end  # what comes late is from before that
        return end, connection.all(_sql().events_read(**part), params | {"end": end})


def _file(source: HistorySource, to: _To, before: datetime, rows: list[Any], folder: Path) -> None:
    reasons = dict(Operation.objects.filter(pk__in={row.operation for row in rows}).values_list("pk", "reason"))
    days = groupby(sorted(rows, key=lambda row: _day(row.at)), key=lambda row: _day(row.at))  # in a day still by seq
    written = {of_events(folder, day, uuid4()): (day, list(events)) for day, events in days}
    with gone_if_it_fails(*(path.parent for path in written)):
        for path, (_, events) in written.items():
            _write(path, events, reasons)
        settle(folder, written)
        files = [_named(source, folder, path, day, len(events)) for path, (day, events) in written.items()]
    _commit(source, to, before, files, folder)
    for day, events in written.values():
        log.info("History: what became of messages on %s, %s events.", day, len(events))


def _commit(source: HistorySource, to: _To, before: datetime, files: list[HistoryFile], folder: Path) -> None:
    """Where its answer is lost the files may be history: only who was refused can take them away."""
    try:
        ledger.filed(source, to, before, files)
    except ledger.Superseded:
        for file in files:
            (folder / file.path).unlink()
        raise


def _named(source: HistorySource, folder: Path, path: Path, day: date, rows: int) -> HistoryFile:
    place, size, dataset = str(path.relative_to(folder)), path.stat().st_size, HistoryFile.Dataset.EVENTS
    return HistoryFile(source=source, dataset=dataset, path=place, day=day, rows=rows, bytes=size)


def _write(path: Path, events: list[Any], reasons: dict[int, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    kinds = (
        dict.fromkeys(COLUMNS, pa.string()) | dict.fromkeys(_NUMBERS, pa.int64()) | {"at": pa.timestamp("us", "UTC")}
    )
    rows = [{**row._asdict(), "source": ARCHIVE, "reason": reasons.get(row.operation) or None} for row in events]
    path.parent.mkdir(parents=True)
    table = pa.Table.from_pylist(rows, schema=pa.schema(kinds))
    pyarrow.parquet.write_table(table, path, compression="zstd", row_group_size=_GROUP)


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def _sql() -> Any:
    return postgresql().pipeline
