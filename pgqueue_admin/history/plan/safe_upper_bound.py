"""The safe upper bound of a table: below it, no running transaction can still add a row."""

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

PATIENCE, BETWEEN = 1.0, 0.05  # seconds: most who write have ended by then; the others are looked for in the next turn
WENT_BACK = -1  # in place of its sequence's file: noticed once, it stays until somebody says what was read
_SAY = "Nothing of it is read before somebody says which (docs/how-to/resume-history.md)."


class UpperBound(NamedTuple):
    """Every number up to ``to``; what was committed by ``at`` is among them."""

    to: int
    at: datetime


def decided(connection: Connection, source: HistorySource) -> UpperBound | None:
    """As CREATE INDEX CONCURRENTLY has it: those who were writing when the highest number was seen have ended. Whoever
    began later has a higher one, so a table that is never left alone is read, too. None: the ledger says why."""
    if source.candidate_max_seq is None:
        _look(connection, source)
    if left := _left(connection, source):
        ledger.held_back(source, _said(left))
        return None
    assert source.candidate_max_seq is not None
    assert source.candidate_at
    return UpperBound(source.candidate_max_seq, source.candidate_at)


def is_known(connection: Connection, source: HistorySource) -> bool:
    """Whether its numbers are those that the ledger goes by, or somebody has said how to go on. False: it says why."""
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
    """Whether the archive, known as the original's, has our columns now: its rows kept their numbers (schema.sql)."""
    return source.table == ARCHIVE and bool(connection.value(_sql().has_archive()))


def batch_blocking_reason(connection: Connection, batch: HistoryBatch, read: int) -> str:
    """Why the ``read`` rows may not be what there is of a batch; empty: they are. Asked when it was read."""
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
    """Its owner may have taken what is missing, at any time; what is there now was there when it was read."""
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
        xid_continuity.written(connection)  # a number that a crash takes back is no head: it would be given out again
        ledger.head_seen(source, head, at, writers)


def _went_back(numbers: Any, source: HistorySource) -> bool:
    """In the same sequence: setval, or a standby that lagged behind and was promoted."""
    is_same = source.oid == numbers.oid and source.sequence_file in (None, numbers.sequence_file)
    return is_same and _is_behind(numbers, source)


def _is_behind(numbers: Any, source: HistorySource) -> bool:
    return numbers.last is not None and numbers.last < source.seq_done


def _blocking_reason(numbers: Any, source: HistorySource) -> str:
    """Why what is below the highest may never be decided, or was read of another table; empty: nothing is wrong."""
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
    """Than the table, or the start of its sequence, that the ledger knows; empty: it is the same."""
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
    """Its sequence may be past what was read by now, with numbers that were given out twice; empty: it is the same."""
    if source.oid is None or not xid_continuity.is_other_line(source.cluster, cluster):
        return ""
    return (
        f"Since it was read up to number {source.seq_done} a standby was promoted, or a backup restored: rows of lower"
        f" numbers may be new ones. {ledger.to_go_on(source)} {_SAY}"
    )


def _lost_nothing(connection: Connection, cluster: str, numbers: Any, source: HistorySource) -> bool:
    """A sequence that is not in the log begins anew with a server that is promoted."""
    return bool(numbers.is_logged) and timelines.has_all(connection, cluster, source)


def _left(connection: Connection, source: HistorySource) -> list[Any]:
    """Those of the writers who are still at it, the oldest first: and who may be one of them by another name."""
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
