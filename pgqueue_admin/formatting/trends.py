"""The trend of a queue, in words: grows, steady, empty in."""

from typing import NamedTuple

from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.formatting.numbers import NBSP, UNKNOWN, rate

BY_DESIGN = frozenset({"audit", "archive", "error"})
WITHOUT_RATES = frozenset({"delayed", "subscription", "unknown"})  # their rows have no sequence
NEVER_SECONDS = 30 * 86_400  # beyond a month a forecast is useless


class Trend(NamedTuple):
    words: str
    tone: str = ""  # "grows", "empties" or nothing

    def __str__(self) -> str:
        return self.words


def trend(ready: int | None, in_per_second: float | None, out_per_second: float | None, kind: str = "input") -> Trend:
    """From two rates, which must differ by more than their noise."""
    if kind in WITHOUT_RATES:
        return Trend(UNKNOWN)
    if ready is None:
        return Trend("not known")
    if in_per_second is None or out_per_second is None:
        return Trend("rate not known")
    net = in_per_second - out_per_second
    if abs(net) <= max(0.05 * max(in_per_second, out_per_second), 1 / 600):
        return Trend("steady" if ready else "empty")
    if net > 0:
        by_design = kind in BY_DESIGN
        said = rate(net)
        return Trend("grows, by design") if by_design else Trend(f"grows {said.number}{said.unit}", "grows")
    return _emptying(ready, -net)


def _emptying(ready: int, net: float) -> Trend:
    if not ready:
        return Trend("empty")
    seconds = ready / net
    if seconds > NEVER_SECONDS:
        return Trend("hardly empties")
    return Trend(f"empty in ≈{NBSP}{duration(seconds)}", "empties")
