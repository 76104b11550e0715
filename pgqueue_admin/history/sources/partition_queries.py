"""The SELECTs of a batch, one per partition, as finished text: executors lack our driver, which would bind values."""

from django.conf import settings

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.query import literal
from pgqueue_admin.formatting.fingerprint import TRACE_MOST
from pgqueue_admin.history.sources import masking
from pgqueue_admin.history.sources.size_limits import HEADERS_MOST, MESSAGE_MOST, body_most
from pgqueue_admin.history.sources.tables import ARCHIVE, SNAPSHOTS
from pgqueue_admin.models import HistoryBatch

BODIES = {"keep": "body_kept", "truncate": "body_cut", "hash": "body_hashed", "drop": "body_dropped"}


def selects(connection: Connection, batch: HistoryBatch, parts: int) -> list[str]:
    """``parts`` statements that together read exactly the batch."""
    statements = postgresql().history
    body = getattr(statements, BODIES[settings.PGQUEUE["HISTORY_BODIES"]])
    names = masking.meant(settings.PGQUEUE["MASKED_HEADERS"])
    shared = {"headers": statements.headers_masked if names else statements.headers_whole, "body": body}
    if batch.source.cursor_kind == SNAPSHOTS:
        query = statements.read_archive(between=statements.between_snapshots, **shared)
    elif batch.source.table == ARCHIVE:
        query = statements.read_original(**shared)
    else:
        query = statements.read_queue(table=postgresql().parse_address(batch.source.table), **shared)
    known = {
        "a": batch.snapshot_from,
        "b": batch.snapshot_to,
        "names": names,
        "masked_signs": masking.signs(names),
        "masked": masking.masked(names),
        "flat": masking.FLAT,
        "headers_most": HEADERS_MOST,
        "message_most": MESSAGE_MOST,
        "trace_most": TRACE_MOST,
        "body_most": body_most(settings.PGQUEUE["HISTORY_BODIES"]),
    }
    return [literal(connection, query, {**known, "lo": lo, "hi": hi}) for lo, hi in ranges(batch, parts)]


def ranges(batch: HistoryBatch, parts: int) -> list[tuple[int, int]]:
    step = max(1, -(-(batch.seq_hi - batch.seq_lo + 1) // parts))
    return [(low, min(low + step - 1, batch.seq_hi)) for low in range(batch.seq_lo, batch.seq_hi + 1, step)]
