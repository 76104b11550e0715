"""Formats numbers, and how they are known: counted, capped, estimate, hint."""

from collections.abc import Iterable
from typing import NamedTuple

UNKNOWN = "–"
NOT_SEEN = "unknown"  # instead of a dash, which would mean nothing: there is a value, but it cannot be seen
NBSP = "\u00a0"
COUNTED = "counted"
CAPPED = "capped"
ABOUT_LEAST = "about-least"  # a sum of estimated and capped parts
APPROXIMATE = frozenset({"estimate", "hint", ABOUT_LEAST})
_OPEN = frozenset({"capped", ABOUT_LEAST})
AT_LEAST = "least"  # present when observation began: it may be older
_WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
LEAST, MOST = 0.005, 99.995  # per cent: stand for less than 0.01 and more than 99.99
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


class Rate(NamedTuple):
    """A rate's number and unit, separate so that a page can set the unit smaller."""

    number: str
    unit: str

    def __str__(self) -> str:
        return f"{self.number}{NBSP}{self.unit}" if self.unit else self.number


def format_int(value: int, *, short_from: int = 100_000_000) -> str:
    """With thousands separators; from ``short_from`` with two significant digits: 1.2 M."""
    return f"{value:,}" if abs(value) < short_from else millions(value)


def millions(value: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if abs(value) >= size:
            return f"{significant(value / size)}{NBSP}{unit}"
    return f"{value:,}"


def format_figure(value: int | None, how: str = "counted") -> str:
    """A count for reading: ``2,318``, ``10,000+``, ``≈ 1.2 M``, ``≈ 52,000+``, ``–``."""
    if value is None:
        return UNKNOWN
    more = "+" if how in _OPEN else ""
    if how in APPROXIMATE:
        return f"≈{NBSP}{format_int(value, short_from=1_000_000)}{more}"
    return format_int(value) + more


def of_sum(parts: Iterable[str]) -> str:
    """How a sum is known, from how its parts are known."""
    unsure = set(parts) - {"counted"}
    if unsure & _OPEN:
        return "capped" if unsure == {"capped"} else ABOUT_LEAST
    return "estimate" if unsure else "counted"


def about(how: str) -> str:
    """The prefix of a duration that is not exact: ``≈ `` or ``at least ``."""
    if how == AT_LEAST:
        return f"at{NBSP}least "  # the only place where a narrow cell may break
    return f"≈{NBSP}" if how in APPROXIMATE else ""


def rate(per_second: float | None) -> Rate:
    """Two significant digits, in the unit with at least one digit before the point."""
    if per_second is None:
        return Rate(UNKNOWN, "")
    per_second = max(per_second, 0.0)
    if per_second * 3600 < 0.5:
        return Rate("0", "/s")
    for times, unit in ((1, "/s"), (60, "/min")):
        if per_second * times >= 1:
            return Rate(significant(per_second * times), unit)
    return Rate(significant(per_second * 3600), "/h")


def significant(value: float) -> str:
    """At most two significant digits: 8.3, 24, 400."""
    if abs(value) < 9.95:
        return f"{value:.1f}".removesuffix(".0")
    whole = round(value)
    return f"{round(whole, 2 - len(str(abs(whole)))):,}"


def share(part: float | None) -> str:
    """From 0 to 1: ``0 %``, ``< 0.01 %``, ``33.33 %``, ``> 99.99 %``, ``100 %``; ``–`` for None."""
    if part is None:
        return UNKNOWN
    shown = per_cent(part)
    if shown in (LEAST, MOST):
        return f"<{NBSP}0.01{NBSP}%" if shown == LEAST else f">{NBSP}99.99{NBSP}%"
    return f"{shown:g}{NBSP}%"


def per_cent(part: float) -> float:
    """To two places; above 0 never shown as 0, below 1 never as 100."""
    if 0 < part < 0.0001:
        return LEAST
    return MOST if 0.9999 < part < 1 else round(100 * part, 2)


def size(count: int | None) -> str:
    """Bytes in units of 1000: ``1.2 kB``, ``38 MB``."""
    if count is None:
        return UNKNOWN
    for unit_size, unit in _SIZES:
        if count >= unit_size * 0.9995:
            return f"{_three(count / unit_size)}{NBSP}{unit}"
    return f"{count}{NBSP}B"


def _three(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{round(value):,}"


def in_words(count: int) -> str:
    """Up to twelve in words, which read better at the start of a sentence."""
    return _WORDS[count] if 0 <= count < len(_WORDS) else f"{count:,}"


def times(count: int) -> str:
    """``once``, ``24 times``."""
    return "once" if count == 1 else f"{count:,} times"


def pluralize(count: int, one: str, many: str = "", how: str = COUNTED) -> str:
    """``1 queue``, ``41 queues``, ``3,000+ queues``."""
    more = "+" if how in _OPEN else ""
    return f"{count:,}{more} {one if count == 1 and not more else many or one + 's'}"
