"""The safe upper bound of a table: no running transaction can still add a row below it."""

import time
from datetime import datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import xid_continuity
from pgqueue_admin.history.sources import timelines
from pgqueue_admin.history.sources.tables import ARCHIVE, NUMBERS, number_of
from pgqueue_admin.models import HistoryBatch, HistorySource

PATIENCE, BETWEEN = 1.0, 0.05  # seconds: most writers have ended by then; the next turn checks the others
WENT_BACK = -1  # stored as the sequence's file: once noticed, it stays until a person resumes the source
_SAY = "Nothing of it is read before somebody says which (docs/how-to/resume-history.md)."


class UpperBound(NamedTuple):
    """All numbers up to ``to`` are final, and include everything committed by ``at``."""

    to: int
    at: datetime


def decided(connection: Connection, source: HistorySource) -> UpperBound | None:
    """As in CREATE INDEX CONCURRENTLY: waits until the writers open when the highest number was seen have ended. Later
    transactions draw higher numbers, so even a busy table is read. None: the ledger says why."""
    if source.candidate_max_seq is None:
        _look(connection, source)
    if left := _left(connection, source):
        ledger.held_back(source, _said(left))
        return None
    assert source.candidate_max_seq is not None
    assert source.candidate_at
    return UpperBound(source.candidate_max_seq, source.candidate_at)


def is_known(connection: Connection, source: HistorySource) -> bool:
    """Whether its numbers are still those the ledger knows, or a person has resumed it. False: the ledger says why."""
    numbers, cluster = _numbers(connection, source), xid_continuity.cluster(connection)
    if source.oid is not None and _went_back(numbers, source):
        ledger.is_of(source, source.oid, WENT_BACK, timelines.Timeline(source.cluster, source.timeline_start_lsn))
    why = _blocking_reason(numbers, source)
    if not why and (why := _was_promoted(cluster, source)) and _lost_nothing(connection, cluster, numbers, source):
        why = ""
    if why:
        ledger.held_back(source, why)
        return False
    ledger.was_renamed(source, numbers.oid, numbers.sequence_file, xid_continuity.server(cluster))
    ledger.is_of(source, numbers.oid, numbers.sequence_file, timelines.of(connection, cluster, source))
    if is_adopted(connection, source):
        ledger.adopted(source)
    return True


def is_adopted(connection: Connection, source: HistorySource) -> bool:
    """Whether the archive, first read as the original's, has our columns now. Rows kept their numbers (schema.sql)."""
    return source.table == ARCHIVE and bool(connection.value(_sql().has_archive()))


def batch_blocking_reason(connection: Connection, batch: HistoryBatch, read: int) -> str:
    """Why the ``read`` rows may not be all of a batch, or "". Checked after reading."""
    source = batch.source
    if source.cursor_kind != NUMBERS:
        return xid_continuity.blocking_reason(connection, source)
    if is_adopted(connection, source):
        return "While it was read, engine_schema has adopted its table."
    if _blocking_reason(_numbers(connection, source), source) or _was_promoted(
        xid_continuity.cluster(connection), source
    ):
        return "While it was read, its table became another one, or its numbers began anew."
    return _why_short(connection, batch, read) if read < batch.rows else ""


def _why_short(connection: Connection, batch: HistoryBatch, read: int) -> str:
    """The table's owner may delete rows at any time; rows that are there now were there when the batch was read."""
    table = batch.source.table
    if batch.relfilenodes != connection.value(_sql().relfilenodes(), {"table": table}):
        return "While it was read, its table was rewritten (alter, truncate, vacuum full): rows may have been unseen."
    left = _sql().queue_rows(table=postgresql().parse_address(table), number=number_of(table))
    if (there := connection.value(left, {"lo": batch.seq_lo, "hi": batch.seq_hi})) <= read:
        return ""
    return (
        f"{read} rows of it came to the files, and {there} of the {batch.rows} planned are still there: some were lost"
        " on their way. On a cluster all machines must see one PGQUEUE_HISTORY_DIR."
    )


def _numbers(connection: Connection, source: HistorySource) -> Any:
    about = {"table": source.table, "number": number_of(source.table)}
    return connection.all(_sql().queue_numbers(numbered_by=_sql().numbered_by), about)[0]


def _look(connection: Connection, source: HistorySource) -> None:
    statements, table = _sql(), {"table": source.table}
    at = connection.all(statements.instant())[0].at
    address, number = postgresql().parse_address(source.table), number_of(source.table)
    head = connection.value(statements.queue_head(table=address, number=number))
    if head is None or head <= source.seq_done:
        ledger.head_seen(source, source.seq_done, at, [])
    else:
        writers = [row.writer for row in connection.all(statements.writers(), table)]
        xid_continuity.written(connection)  # flush first: a number lost in a crash would be given out again
        ledger.head_seen(source, head, at, writers)


def _went_back(numbers: Any, source: HistorySource) -> bool:
    """In the same sequence: setval, or promotion of a lagging standby."""
    is_same = source.oid == numbers.oid and source.sequence_file in (None, numbers.sequence_file)
    return is_same and _is_behind(numbers, source)


def _is_behind(numbers: Any, source: HistorySource) -> bool:
    return numbers.last is not None and numbers.last < source.seq_done


def _blocking_reason(numbers: Any, source: HistorySource) -> str:
    """Why numbers below the highest may never be final, or were read from another table; "" if all is well."""
    if not numbers.has_number:
        return f"It has no column {number_of(source.table)} any more: that is what it is read by."
    if (numbers.cached or 1) > 1:
        return (
            f"Its sequence hands {numbers.cached} numbers at once to a session (CACHE): by number alone, rows that"
            " come late would be missed. Its owner mends that with: alter sequence ... cache 1."
        )
    if source.oid is not None:
        return _is_another(numbers, source)
    if _is_behind(numbers, source):
        return (
            f"It was read up to number {source.seq_done}, and its sequence is at {numbers.last}: nothing of it is read"
            " before its numbers are past that."
        )
    return ""


def _is_another(numbers: Any, source: HistorySource) -> str:
    """Why it is not the table, or not the start of the sequence, that the ledger knows; "" if it is."""
    read = f"was read up to number {source.seq_done}"
    if source.oid != numbers.oid:
        return f"It is another table than the one that {read}: it was made anew, or restored. {_SAY}"
    if source.sequence_file == WENT_BACK or _went_back(numbers, source):
        return (
            f"After it {read} its sequence was behind that: its numbers began anew, and rows of lower numbers may be"
            f" new ones. {_SAY}"
        )
    if source.sequence_file not in (None, numbers.sequence_file):
        return f"Since it {read} its sequence was restarted, or altered: rows of lower numbers may be new ones. {_SAY}"
    return ""


def _was_promoted(cluster: str, source: HistorySource) -> str:
    """Why the sequence, even if past what was read, may have given out numbers twice; "" on the same timeline."""
    if source.oid is None or not xid_continuity.is_other_line(source.cluster, cluster):
        return ""
    return (
        f"Since it was read up to number {source.seq_done} a standby was promoted, or a backup restored: rows of lower"
        f" numbers may be new ones. {ledger.to_go_on(source)} {_SAY}"
    )


def _lost_nothing(connection: Connection, cluster: str, numbers: Any, source: HistorySource) -> bool:
    """Requires a logged sequence: an unlogged one restarts when a standby is promoted."""
    return bool(numbers.is_logged) and timelines.has_all(connection, cluster, source)


def _left(connection: Connection, source: HistorySource) -> list[Any]:
    """Writers still open, the oldest first, and transactions that may be one of them under another id."""
    deadline, left = time.monotonic() + PATIENCE, list[Any]()
    while source.open_transactions:
        now = connection.all(_sql().writers(), {"table": source.table})
        left = [row for row in now if row.writer in source.open_transactions or row.is_renamed]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(BETWEEN)
    return left


def _said(left: list[Any]) -> str:
    many = "A transaction that writes to it is" if len(left) == 1 else f"{len(left)} transactions that write to it are"
    oldest = left[0]
    since = f" since {oldest.since:%Y-%m-%d %H:%M:%S} UTC" if oldest.since else ""
    return f"{many} open{since} ({oldest.who}): what came after is read once that has ended."


def _sql() -> Any:
    return postgresql().history
