"""Words for an anomaly: what was observed, and the baseline."""

import math

from pgqueue_admin.formatting.durations import measured, nearest
from pgqueue_admin.formatting.numbers import NBSP, format_int

WORDS = {"slower": "Slower", "failures": "More failures", "silence": "Silence", "growth": "Growth"}
KNOWN = {
    "slower": "≈ within 1 %",
    "failures": "counted",
    "silence": "counted",
    "growth": "sampled",
}


def span(milliseconds: float) -> str:
    """``≈ 1.33 s``; below the clock's resolution ``< 1 ms``, which needs no ≈."""
    said = measured(milliseconds)
    return said if said.startswith("<") else f"≈{NBSP}{said}"


def between(low: float, high: float) -> str:
    """``≈ 1 s to ≈ 2 s``; a range that starts near zero has only an upper end."""
    return f"up to {span(high)}" if nearest(low) < 1 else f"{span(low)} to {span(high)}"


def seen(kind: str, number: float, messages: int | None, timed: int | None = None) -> str:
    """``timed``: how many messages have a known duration; None: not counted, and not mentioned."""
    if kind == "slower":
        return f"19 in 20 within {span(number)}{_of_timed(messages or 0, timed)}"
    if kind == "failures":
        return f"{format_int(round(number))} of {format_int(messages or 0)} failed"
    if kind == "silence":
        return "nothing finished"
    return f"{format_int(round(number))} waited, for half of the hour at least"


def _of_timed(messages: int, timed: int | None) -> str:
    if timed is None:
        return ""
    untimed = messages - timed
    return f", of {format_int(timed)} timed" + (f" ({format_int(untimed)} more have no time)" if untimed > 0 else "")


def usual(kind: str, number: float, median: float, low: float, high: float) -> str:
    """``number``: the observed value. It exceeds the limit, so both are never worded alike."""
    least, most = whole(low, high)
    if kind == "slower":
        return f"{span(median)}, {_at_most(span(high), span(number))}"
    if kind == "silence":
        return f"{format_int(round(median))}, at least {format_int(least)}"
    return f"{format_int(round(median))}, {_at_most(format_int(most), format_int(round(number)))}"


def whole(low: float, high: float) -> tuple[int, int]:
    """The lowest and highest integer inside a range of counts; rounding could leave the range."""
    return math.ceil(low), math.floor(high)


def _at_most(limit: str, seen: str) -> str:
    return f"just under {limit} at most" if limit == seen else f"at most {limit}"
