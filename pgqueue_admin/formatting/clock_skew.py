"""Words for skewed due times: by the writers' session zone, or by their clocks (wire sheet 3)."""

from datetime import timedelta

from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import NBSP, pluralize


def zone_fact(zone: timedelta) -> str:
    """``The programs that write here use a session time zone 5 h behind UTC``."""
    side = "behind" if _late(zone) else "ahead of"
    return f"The programs that write here use a session time zone {_length(zone)} {side} UTC"


def zone_meaning(zone: timedelta, told_by: int) -> str:
    off = "too late" if _late(zone) else "too early"
    return (
        f"Due times stand {_length(zone)} {off} in the table, "
        f"as {pluralize(told_by, 'message says', 'messages say')}; "
        f"pages show them corrected. A mover whose session is in UTC, as ours is, moves them {off}. "
        "Set the same session time zone for every program that writes to or moves from this table, ideally UTC."
    )


def clock(off: timedelta) -> str:
    side = "behind" if _late(off) else "ahead of"
    return (
        f"The clocks of programs that write here are {_length(off)} {side} the database's, which decides what is due. "
        "Messages are moved when the database says so."
    )


def short(zone: timedelta, off: timedelta, is_zone: bool, is_clock: bool) -> str:
    """For a table cell: the skew, or that there is none."""
    said = [f"zone UTC{'−' if _late(zone) else '+'}{_length(zone)}"] if is_zone else []
    said += [f"clock {'−' if _late(off) else '+'}{_length(off)}"] if is_clock else []
    return ", ".join(said) or "as ours: UTC"


def _late(off: timedelta) -> bool:
    """Stored too late: a zone behind UTC, or a clock behind the server's."""
    return off > timedelta()


def _length(off: timedelta) -> str:
    return duration(float(round(abs(off).total_seconds()))).replace(f".0{NBSP}", NBSP)
