"""Formats instants: relative in live lists, absolute with the zone everywhere else."""

from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pgqueue_admin.formatting.durations import duration

IMPOSSIBLE = "impossible time"
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


class DisplayZone(ZoneInfo):
    """A person's time zone. An instant that it cannot convert stays in UTC, for Django's templates, too."""

    def fromutc(self, instant: datetime) -> datetime:
        try:
            return super().fromutc(instant)
        except OverflowError:
            return instant.replace(tzinfo=UTC)


def zone(name: str) -> tzinfo:
    """The zone with this name, as browsers report it; UTC if unknown."""
    try:
        return DisplayZone(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return DisplayZone("UTC")


def local(instant: datetime, zone: tzinfo) -> datetime:
    """In ``zone``; the calendar's first and last day may not convert, and stay in UTC."""
    try:
        return instant.astimezone(zone)
    except (OverflowError, ValueError):
        return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def beyond(instant: datetime) -> str:
    """The database's text for an instant beyond Python's calendar (``dialects.out_of_range_times``); empty for
    others."""
    return getattr(instant, "beyond", "")


def short(instant: datetime, now: datetime, zone: tzinfo) -> str:
    """Today ``02:47``, this year ``18 Nov 16:20``, else ``2025-11-18``."""
    if beyond(instant):
        return IMPOSSIBLE
    at, today = local(instant, zone), local(now, zone)
    if at.date() == today.date():
        return _minute(at)
    if at.year == today.year:
        return f"{at.day} {_MONTHS[at.month - 1]} {_minute(at)}"
    return at.date().isoformat()


def full(instant: datetime, zone: tzinfo) -> str:
    """``Fri 20 Nov 2026 02:47:00 CET``."""
    if beyond(instant):
        return f"{IMPOSSIBLE} ({beyond(instant)})"
    at = local(instant, zone)
    return f"{day(at)} {_minute(at)}:{at.second:02} {zone_name(at)}"


def day(at: date) -> str:
    """``Fri 20 Nov 2026``."""
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]} {at.year}"


def sentence(instant: datetime, zone: tzinfo) -> str:
    """``20 Nov 2026 02:47 CET``: to the minute, for use within a sentence."""
    if beyond(instant):
        return f"{IMPOSSIBLE} ({beyond(instant)})"
    at = local(instant, zone)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year} {_minute(at)} {zone_name(at)}"


def precise(instant: datetime, zone: tzinfo) -> str:
    """With milliseconds, for timelines: ``02:47:03.412``."""
    if beyond(instant):
        return IMPOSSIBLE
    at = local(instant, zone)
    return f"{_minute(at)}:{at.second:02}.{at.microsecond // 1000:03d}"


def _minute(at: datetime) -> str:
    """Pages format hundreds of times, and strftime is five times slower."""
    return f"{at.hour:02}:{at.minute:02}"


def iso(instant: datetime) -> str:
    """ISO 8601 in UTC, for machines and for copying."""
    return local(instant, UTC).isoformat().replace("+00:00", "Z")


def ago(instant: datetime, now: datetime) -> str:
    """``12 s ago``, ``in 3 min``, ``now``."""
    if beyond(instant):
        return IMPOSSIBLE
    seconds = (now - instant).total_seconds()
    if abs(seconds) < 1:
        return "now"
    said = duration(abs(seconds) if abs(seconds) < 10 else float(int(abs(seconds))))
    return f"{said} ago" if seconds > 0 else f"in {said}"


def zone_name(at: datetime) -> str:
    name = at.tzname() or "UTC"
    return name if name[0].isalpha() else f"UTC{name}"
