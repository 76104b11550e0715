"""Delay of a message: a duration or a due time."""

from datetime import UTC, datetime, timedelta

from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import LONGEST_SPAN, wire_time

Delay = timedelta | datetime


def check(delay: Delay, ttbr: timedelta | None, has_table: bool) -> None:
    """Raises ValueError for an invalid delay (wire sheet 3)."""
    if not has_table:
        raise ValueError("an endpoint that only sends has no delayed table: leave out delay=, or let it receive")
    if ttbr is not None:
        raise ValueError("a delayed message cannot have a time to be received: leave out delay= or ttbr=")
    if isinstance(delay, timedelta) and delay < timedelta():
        raise ValueError(f"a delay of {delay} is over before the message is sent")
    if isinstance(delay, timedelta) and delay > LONGEST_SPAN:
        raise ValueError(f"a delay of {delay.days} days ends in a year that no header can say: 9999 is the last")
    if isinstance(delay, datetime) and delay.tzinfo is None:
        raise ValueError(
            f"the time {delay} has no zone, so it is no instant: use datetime.now(UTC) + …, or .astimezone()"
        )
    if isinstance(delay, datetime):
        _check_year(delay)


def _check_year(at: datetime) -> None:
    try:
        at.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"the time {at} is in UTC in a year that no header can say: 1 to 9999 can be") from None


def headers(made: h.Headers, delay: Delay, destination: str, since: datetime) -> h.Headers:
    """Add the destination as given and, if missing, the due time."""
    due = since + delay if isinstance(delay, timedelta) else delay
    return {h.DELIVER_AT: wire_time(due)} | made | {h.FORWARD_DESTINATION: destination}


def seconds(delay: Delay) -> float:
    """Seconds from now; 0 if past."""
    left = delay if isinstance(delay, timedelta) else delay - datetime.now(UTC)
    return max(0.0, left.total_seconds())
