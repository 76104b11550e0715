"""How a length of time is said: its largest two units."""

from pgqueue_admin.formatting.numbers import NBSP, UNKNOWN

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


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
    """Of what is known within one per cent: ``< 1 ms``, ``38 ms``, ``1.33 s``, ``1 min 45 s``."""
    shown = nearest(milliseconds)
    if shown < 1:
        return f"<{NBSP}1{NBSP}ms"
    if shown < 1000:
        return f"{shown:.0f}{NBSP}ms"
    return f"{shown / 1000:.3g}{NBSP}s" if shown < 60_000 else _two_units(round(shown / 1000))


def nearest(milliseconds: float) -> float:
    """What is said of it, still in milliseconds: charts are told this, and round nothing by themselves."""
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
    """As a setting is written: ``1 s``, not ``1.0 s``."""
    return duration(seconds).replace(f".0{NBSP}s", f"{NBSP}s")
