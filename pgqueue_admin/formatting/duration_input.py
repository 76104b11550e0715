"""A length of time as a person types it: ``1h``, ``90 m``, ``2d``, ``500ms``, ``1 min 30 s``, ``5 days``."""

import re

from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.formatting.numbers import NBSP

_UNITS = {
    "ms": 0.001, "msec": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60,
    "h": 3_600, "hr": 3_600, "hour": 3_600, "d": 86_400, "day": 86_400, "w": 604_800, "wk": 604_800, "week": 604_800,
}  # fmt: skip
_UNITS |= {f"{unit}s": size for unit, size in _UNITS.items() if len(unit) > 1 and unit != "ms"}  # days, mins, hrs
_PART = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([a-z]+)\s*", re.ASCII)


def seconds(text: str, unit: str = "") -> float | None:
    """How many seconds the text says, or None when it is no duration; a bare number is in ``unit``, if one is given."""
    text = text.strip().lower().replace("\u00a0", " ")
    if unit and re.fullmatch(r"\d{1,9}(\.\d{1,6})?", text, re.ASCII):
        text += unit
    parts = list(_PART.finditer(text))
    if not parts or "".join(part[0] for part in parts) != text or any(part[2] not in _UNITS for part in parts):
        return None
    return sum(float(part[1]) * _UNITS[part[2]] for part in parts)


def written(length: float) -> str:
    """As a person would type it, and read again it is the same to the millisecond: ``1 s``, ``12.345 s``."""
    said = plain(length).replace(",", "")  # 3650 d: nobody types the comma
    read = seconds(said)
    if read is not None and round(read * 1000) == round(length * 1000):
        return said
    return f"{length:.3f}".rstrip("0").rstrip(".") + f"{NBSP}s"
