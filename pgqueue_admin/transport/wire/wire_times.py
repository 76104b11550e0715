"""Times and spans in the format of headers (wire sheet 7.1)."""

import re
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_TIME = re.compile(r"(\d{4}).(\d\d).(\d\d).(\d\d).(\d\d).(\d\d).(\d{6})..", re.ASCII | re.DOTALL)
_SPAN = re.compile(r"(-?)(?:(\d{1,8})\.)?(\d\d?):(\d\d?):(\d\d?)(?:\.(\d{1,7}))?", re.ASCII)

SHORTEST_SPAN = timedelta(milliseconds=1)  # the resolution of the original's tables and headers
LONGEST_SPAN = timedelta(days=2_900_000)  # ends in the year 9966: headers end with 9999


def wire_time(instant: datetime) -> str:
    """28 characters, e.g. ``2026-11-14 12:26:51:355787 Z``. Not strftime: it does not pad early years."""
    text = instant.astimezone(UTC).isoformat(" ", "microseconds")
    return f"{text[:19]}:{text[20:26]} Z"


def wire_now() -> str:
    """``wire_time`` of now; fast, because every message has it."""
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}:{rest // 1000:06} Z"


@lru_cache(maxsize=2)
def _second(since_epoch: int) -> str:
    return datetime.fromtimestamp(since_epoch, UTC).isoformat(" ")[:19]


def parse_time(text: str | None) -> datetime | None:
    """Parse as endpoints do: length and digits count, separators do not. None if it is not a time."""
    match = _TIME.fullmatch(text) if text else None
    if match is None:
        return None
    try:
        return datetime(*map(int, match.groups()), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None


def wire_timespan(span: timedelta) -> str:
    """.NET's constant format: ``[-][d.]hh:mm:ss[.fffffff]``, e.g. ``20.00:00:00``."""
    sign, span = ("-", -span) if span < timedelta() else ("", span)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days = f"{span.days}." if span.days else ""
    fraction = f".{span.microseconds:06}0" if span.microseconds else ""
    return f"{sign}{days}{hours:02}:{minutes:02}:{seconds:02}{fraction}"


def parse_timespan(text: str | None) -> timedelta | None:
    """Parse a span; None if it is not one. A fraction finer than a microsecond is truncated."""
    match = _SPAN.fullmatch(text.strip()) if text else None
    if match is None:
        return None
    sign, days, hours, minutes, seconds, fraction = match.groups()
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        return None
    micros = int((fraction or "").ljust(7, "0")[:6])
    span = timedelta(int(days or 0), int(seconds), micros, 0, int(minutes), int(hours))
    return -span if sign else span
