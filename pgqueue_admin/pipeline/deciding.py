"""Up to which number a table that we may not alter is decided: no transaction that still runs has one below."""

import time
from datetime import datetime
from typing import Any, NamedTuple

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.pipeline import ledger
from pgqueue_admin.records.models import HistorySource

PATIENCE, BETWEEN = 1.0, 0.05  # seconds: most who write have ended by then; the others are looked for in the next turn


class Decided(NamedTuple):
    """Every number up to ``to``; what was committed by ``at`` is among them."""

    to: int
    at: datetime


def decided(connection: Connection, source: HistorySource) -> Decided | None:
    """As CREATE INDEX CONCURRENTLY has it: those who were writing when the highest number was seen have ended. Whoever
    began later has a higher one, so a table that is never left alone is read, too. None: the ledger says why."""
    if source.head is None and not _look(connection, source):
        return None
    if left := _left(connection, source):
        ledger.held_back(source, _said(left))
        return None
    assert source.head is not None
    assert source.head_at
    return Decided(source.head, source.head_at)


def _look(connection: Connection, source: HistorySource) -> bool:
    """False: its numbers say nothing."""
    statements, table = postgresql().pipeline, {"table": source.table}
    numbers = connection.all(statements.queue_numbers(), table)[0]
    if why := _why_not(numbers, source):
        ledger.held_back(source, why)
        return False
    ledger.is_of(source, numbers.oid, numbers.sequence_file)
    at = connection.all(statements.instant())[0].at
    head = connection.value(statements.queue_head(table=postgresql().parse_address(source.table)))
    if head is None or head <= source.seq_done:
        ledger.head_seen(source, source.seq_done, at, [])
    else:
        ledger.head_seen(source, head, at, [row.writer for row in connection.all(statements.writers(), table)])
    return True


def _why_not(numbers: Any, source: HistorySource) -> str:
    """Why what is below the highest may never be decided, or was read of another table; empty: nothing is wrong."""
    if (numbers.cached or 1) > 1:
        return (
            f"Its sequence hands {numbers.cached} numbers at once to a session (CACHE): by number alone, rows that"
            " come late would be missed. Its owner mends that with: alter sequence ... cache 1."
        )
    if source.oid is not None and source.oid != numbers.oid:
        return (
            f"It is another table than the one that was read up to number {source.seq_done}: it was made anew, or"
            " restored. Nothing of it is read before somebody says which (docs/history.md)."
        )
    if source.oid is not None and source.sequence_file not in (None, numbers.sequence_file):
        return (
            f"Since it was read up to number {source.seq_done} its sequence was restarted, or altered: rows of lower"
            " numbers may be new ones. Nothing of it is read before somebody says which (docs/history.md)."
        )
    if numbers.last is not None and numbers.last < source.seq_done:
        return (
            f"It was read up to number {source.seq_done}, and its sequence is at {numbers.last}: its numbers began"
            " anew. Nothing of it is read before they are past that."
        )
    return ""


def _left(connection: Connection, source: HistorySource) -> list[Any]:
    """Those of the writers who are still at it, the oldest first: and who may be one of them by another name."""
    deadline, left = time.monotonic() + PATIENCE, list[Any]()
    while source.writers:
        now = connection.all(postgresql().pipeline.writers(), {"table": source.table})
        left = [row for row in now if row.writer in source.writers or row.is_renamed]
        if not left or time.monotonic() > deadline:
            break
        time.sleep(BETWEEN)
    return left


def _said(left: list[Any]) -> str:
    many = "A transaction that writes to it is" if len(left) == 1 else f"{len(left)} transactions that write to it are"
    oldest = left[0]
    since = f" since {oldest.since:%Y-%m-%d %H:%M:%S} UTC" if oldest.since else ""
    return f"{many} open{since} ({oldest.who}): what came after is read once that has ended."
