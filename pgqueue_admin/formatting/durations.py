"""Formats durations in their two largest units, and parses typed ones: ``1h``, ``90 m``, ``5 days``."""

import re

from pgqueue_admin.formatting.numbers import NBSP, UNKNOWN

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_TYPED_UNITS = {
    "ms": 0.001, "msec": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60,
    "h": 3_600, "hr": 3_600, "hour": 3_600, "d": 86_400, "day": 86_400, "w": 604_800, "wk": 604_800, "week": 604_800,
}  # fmt: skip
# plurals: days, mins, hrs
_TYPED_UNITS |= {f"{unit}s": size for unit, size in _TYPED_UNITS.items() if len(unit) > 1 and unit != "ms"}
_PART = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)\s*", re.ASCII)


def duration(seconds: float | None) -> str:
    """``380 ms``, ``3.0 s``, ``1 min 45 s``, ``6 d 4 h``."""
    if seconds is None:
        return UNKNOWN
    if round(seconds * 1000) < 0:
        return f"−{duration(-seconds)}"
    if round(seconds * 1000) < 1000:
        return f"{round(seconds * 1000)}{NBSP}ms" if seconds else f"0{NBSP}s"
    if seconds < 9.95:
        return f"{seconds:.1f}{NBSP}s"
    return _two_units(round(seconds))


def measured(milliseconds: float) -> str:
    """For values known within one per cent: ``< 1 ms``, ``38 ms``, ``1.33 s``, ``1 min 45 s``."""
    shown = nearest(milliseconds)
    if shown < 1:
        return f"<{NBSP}1{NBSP}ms"
    if shown < 1000:
        return f"{shown:.0f}{NBSP}ms"
    return f"{shown / 1000:.3g}{NBSP}s" if shown < 60_000 else _two_units(round(shown / 1000))


def nearest(milliseconds: float) -> float:
    """The rounded value in milliseconds: charts get this, and do not round by themselves."""
    if milliseconds < 999.5:
        return round(milliseconds)
    three_digits = float(f"{milliseconds:.3g}")
    return three_digits if three_digits < 60_000 else round(three_digits / 1000) * 1000.0


def _two_units(seconds: int) -> str:
    place = next(place for place, (size, _) in enumerate(_UNITS) if seconds >= size)
    size, unit = _UNITS[place]
    whole, rest = divmod(seconds, size)
    said = f"{whole:,}{NBSP}{unit}"
    if place + 1 < len(_UNITS):
        next_size, next_unit = _UNITS[place + 1]
        if rest // next_size:
            said += f"{NBSP}{rest // next_size}{NBSP}{next_unit}"
    return said


def plain(seconds: float | None) -> str:
    """As settings are written: ``1 s``, not ``1.0 s``."""
    return duration(seconds).replace(f".0{NBSP}s", f"{NBSP}s")


def parse(text: str, unit: str = "") -> float | None:
    """Seconds, or None if the text is no duration; a bare number is in ``unit``, if given."""
    text = text.strip().lower().replace("\u00a0", " ")
    if unit and re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text, re.ASCII):
        text += unit
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text or any(part[2] not in _TYPED_UNITS for part in parts):
        return None
    return sum(float(part[1]) * _TYPED_UNITS[part[2]] for part in parts)


def typed(length: float) -> str:
    """As a person would type it; parsing it gives the same value to the millisecond: ``1 s``, ``12.345 s``."""
    said = plain(length).replace(",", "")  # 3,650 d: nobody types the comma
    read = parse(said)
    if read is not None and round(read * 1000) == round(length * 1000):
        return said
    return f"{length:.3f}".rstrip("0").rstrip(".") + f"{NBSP}s"
