"""Occupancy of a queue's seq range: where rows exist between head and tail."""

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import TimedOut
from pgqueue_admin.monitor.batch_query import within
from pgqueue_admin.monitor.queue_table import QueueTable

STEPS = 96
TIMEOUT = 0.1  # seconds; unvacuumed dead rows slow the first scan, and the chart is not worth more


def steps(
    connection: Connection, table: QueueTable, head_seq: int, tail_seq: int, timeout: float = TIMEOUT
) -> list[bool] | None:
    """Whether a row exists in each of equal steps of the span; None on timeout."""
    span = tail_seq - head_seq + 1
    query = connection.dialect.browse.seq_occupancy(table=table.address, steps=min(STEPS, span))
    try:
        with within(connection, timeout):
            return [row.filled for row in connection.all(query, {"head": head_seq, "span": span})]
    except TimedOut:
        return None
