"""The smallest time to be received of each message type near a queue's head (T16)."""

from datetime import timedelta

from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor.depth import BOTTOM
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.wire_times import parse_timespan


def smallest(connection: Connection, table: QueueTable, low_water: int | None = None) -> dict[str, timedelta]:
    """The smallest time to be received of each message type near the head."""
    low = BOTTOM if low_water is None else low_water
    found: dict[str, timedelta] = {}
    for row in connection.all(connection.dialect.browse.times_to_be_received(table=table.address), {"low": low}):
        kind, span = _ttbr(row.headers)
        if span is not None and span > timedelta():  # zero: nobody could receive it, a sender's mistake
            found[kind] = min(span, found.get(kind, span))
    return found


def _ttbr(text: str) -> tuple[str, timedelta | None]:
    try:
        headers = wire.parse(text)
    except wire.HeadersUnreadable:
        return "", None
    return wire.enclosed_type(headers), parse_timespan(headers.get(wire.TIME_TO_BE_RECEIVED))
