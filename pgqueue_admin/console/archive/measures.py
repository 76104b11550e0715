"""Numbers, sizes, durations and times of a search as bounds of a span: ``low`` is included, ``high`` is not."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from pgqueue_admin.archive.search_terms import Bound
from pgqueue_admin.models import database_clock

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhdw])", re.ASCII)
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?(b|kb|mb|gb|)", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_SIGNS = {"", ">", ">=", "<", "<="}
_LONGEST = 100 * 366 * 86_400.0
_LARGEST = 10**15
DAYS = {"today": 0, "yesterday": 1}


def is_duration(value: str) -> bool:
    return _DURATION.fullmatch(value) is not None


class Wrong(ValueError):
    """Why a value does not fit its field."""


class Bounds(NamedTuple):
    low: Bound
    high: Bound


Reader = Callable[[str], Bounds]  # one value, as the span from itself to the next value


def bounds(value: str, read: Reader) -> Bounds:
    """``3``, ``>3``, ``>=3``, ``<3``, ``<=3``, ``3..5``. A range includes both ends."""
    if ".." in value:
        first, _, last = value.partition("..")
        low, high = read(first).low, read(last).high
        if _is_turned_round(low, high):
            raise Wrong(f"{last} is before {first}. Write the lower one first.")
        return Bounds(low, high)
    compared, single = _compared(value)
    low, high = read(single)
    return {
        "": Bounds(low, high),
        ">": Bounds(high, None),
        ">=": Bounds(low, None),
        "<": Bounds(None, low),
        "<=": Bounds(None, high),
    }[compared]


def _is_turned_round(low: Bound, high: Bound) -> bool:
    """A time and a duration cannot be compared without the clock."""
    match low, high:
        case float(), float():
            return low <= high  # both are seconds ago
        case (int(), int()) | (str(), str()):
            return low >= high  # type: ignore[operator]
    return False


def _compared(value: str) -> tuple[str, str]:
    single = value.lstrip("<>=")
    sign = value.removesuffix(single)
    return (sign, single) if sign in _SIGNS else ("", value)


def number(value: str) -> Bounds:
    if not _NUMBER.fullmatch(value):
        raise Wrong(f"{value} is no number. Try 3, >=3, 1..5.")
    return Bounds(int(value), int(value) + 1)


def size(value: str) -> Bounds:
    found = _SIZE.fullmatch(value)
    if not found:
        raise Wrong(f"{value} is no size. Try >1mb, <500kb, 10kb..1mb.")
    octets = round(float(found[1]) * _BYTES[found[2].lower()])
    if octets > _LARGEST:
        raise Wrong(f"{value} is larger than any message. Try >1mb, <500kb, 10kb..1mb.")
    return Bounds(octets, octets + 1)


def seconds(value: str) -> float:
    found = _DURATION.fullmatch(value)
    if not found:
        raise Wrong(f"{value} is no duration. Try 1h, 90m, 2d.")
    length = float(found[1]) * _SECONDS[found[2]]
    if length > _LONGEST:
        raise Wrong(f"{value} is longer than a hundred years. Try 1h, 90m, 2d.")
    return length


def age(value: str) -> Bounds:
    """An age: an older message died earlier, so the ends swap."""
    if ".." in value:
        first, _, last = value.partition("..")
        youngest, oldest = seconds(first), seconds(last)
        if youngest >= oldest:
            raise Wrong(f"{last} is not longer than {first}. Write the shorter one first.")
        return Bounds(oldest, youngest)
    compared, single = _compared(value)
    length = seconds(single)
    if not compared:
        raise Wrong(f"say which side: age:<{single} is younger, age:>{single} is older.")
    return Bounds(None, length) if compared[0] == ">" else Bounds(length, None)


def times(value: str) -> Bounds:
    """``2h`` is the last two hours. A day, minute or second means the whole of it. Without a zone, it is UTC."""
    if _DURATION.fullmatch(value):
        return Bounds(seconds(value), None)
    if value[:1] in "<>" and _DURATION.fullmatch(value.lstrip("<>=")):
        raise Wrong(f"{value} could mean two things. Write {value.lstrip('<>=')} for since then, or age:{value}.")
    return bounds(value, _time)


def _time(value: str) -> Bounds:
    if _DURATION.fullmatch(value):
        return Bounds(seconds(value), seconds(value))
    start = instant(value)
    try:
        return Bounds(start.isoformat(), (start + _precision(value)).isoformat())
    except OverflowError:
        raise Wrong(f"{value} is beyond the calendar.") from None


def instant(value: str) -> datetime:
    """A time, or the midnight that begins a day. Today and yesterday follow the database's clock."""
    if value in DAYS:
        midnight = database_clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(DAYS[value])
    try:
        found = datetime.fromisoformat(value)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise Wrong("write a time as 2026-11-21T09:30Z, or a day as 2026-11-21.") from None


def _precision(value: str) -> timedelta:
    try:
        if value in DAYS or date.fromisoformat(value):
            return timedelta(days=1)
    except ValueError:
        pass
    clock = re.split(r"[zZ+]|(?<=:\d\d)-", value.partition("T")[2] or value.partition(" ")[2])[0]
    if "." in clock or "," in clock:
        return timedelta(microseconds=1)
    return timedelta(seconds=1) if clock.count(":") == 2 else timedelta(minutes=1)
