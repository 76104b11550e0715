"""Plans the next batch: an open one exactly as planned, else the new rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import safe_upper_bound, xid_continuity
from pgqueue_admin.history.sources.size_limits import HEADERS_MOST, body_read
from pgqueue_admin.history.sources.tables import ARCHIVE, NUMBERS, SNAPSHOTS, number_of
from pgqueue_admin.models import HistoryBatch, HistorySource

MOST = 500_000
BYTES = 2_000_000_000  # of a batch: sorting takes about as much disk beside history


@dataclass(frozen=True)
class RowRange:
    """Rows that are final: no running transaction can add one among them."""

    seq_lo: int | None
    seq_hi: int | None
    rows: int
    seq_checksum: str
    bytes: int  # at most, of what is read
    most: int  # limit on rows when this was counted
    written: int  # WAL position in bytes, after all of these rows
    snapshot_from: str = ""
    snapshot_to: str = ""
    at: datetime | None = None
    relfilenodes: str = ""


def plan_batch(connection: Connection, source: HistorySource, most: int = MOST) -> HistoryBatch | None:
    """The batch to run now, or None if there are no new rows. Writes to the ledger only."""
    while _is_known(connection, source):
        if left := ledger.open_batch(source):
            return left
        found = (by_snapshots if source.cursor_kind == SNAPSHOTS else by_numbers)(connection, source, most)
        if found is None:
            return None
        if found.rows == 0:
            ledger.nothing_came(source, found)
            return None
        if batch := ledger.planned(source, found, is_last=found.rows < found.most):
            return batch
        source.refresh_from_db()  # another driver has moved it since it was read
    return None


def _is_known(connection: Connection, source: HistorySource) -> bool:
    """Checks both kinds for an archive that is adopted in between. False: the ledger says why."""
    if source.cursor_kind == NUMBERS and not safe_upper_bound.is_known(connection, source):
        return False
    return source.cursor_kind != SNAPSHOTS or xid_continuity.is_known(connection, source)


def by_snapshots(connection: Connection, source: HistorySource, most: int) -> RowRange:
    now = connection.all(postgresql().history.instant())[0]
    begin, end = source.snapshot or ledger.BEFORE_ALL, source.snapshot_target or now.snapshot
    params = {"a": begin, "b": end, "done": source.seq_done, "most": most}
    statements = postgresql().history
    query = statements.archive_next(between=statements.between_snapshots, bytes=statements.bytes_read)
    is_first = bool(source.snapshot) and not source.seq_done  # later batches go on at a number
    counted = _counted(connection, query, params, [postgresql().history.by_transactions()] if is_first else [])
    at = (source.snapshot_target and source.candidate_at) or now.at  # the time of the snapshot that is read up to
    return RowRange(**counted, snapshot_from=begin, snapshot_to=end, at=at)


def by_numbers(connection: Connection, source: HistorySource, most: int) -> RowRange | None:
    if (found := safe_upper_bound.decided(connection, source)) is None:
        return None
    params: dict[str, Any] = {"table": source.table, "done": source.seq_done, "decided": found.to, "most": most}
    statements, address = postgresql().history, postgresql().parse_address(source.table)
    size = statements.bytes_unknown if source.table == ARCHIVE else statements.bytes_read
    number, files = number_of(source.table), statements.relfilenodes
    query = statements.queue_next(table=address, number=number, bytes=size, files=files)
    return RowRange(**_counted(connection, query, params), at=found.at)


def _counted(connection: Connection, query: Any, params: dict[str, Any], told: Sequence[Any] = ()) -> dict[str, Any]:
    """Count at most ``most`` rows of at most BYTES, or a single larger row."""
    known = {**params, "headers_most": HEADERS_MOST, "body_read": body_read(settings.PGQUEUE["HISTORY_BODIES"])}
    while True:
        with connection.transaction():
            for each in (postgresql().history.patiently(), *told):
                connection.run(each)
            counted: dict[str, Any] = connection.all(query, known)[0]._asdict()
        if counted["bytes"] <= BYTES or known["most"] == 1:
            return {**counted, "most": known["most"], "written": xid_continuity.written(connection)}
        half = min(counted["rows"], known["most"]) // 2  # rows of one number come together, whatever the limit
        known["most"] = max(1, min(half, counted["rows"] * BYTES // counted["bytes"]))
