"""What is usual, and how far from it something may be: quartiles of the same hour of the weeks before. Pure."""

import math
from typing import NamedTuple

WEEKS = 8  # looked back on
LEAST_WEEKS = 3  # before anything is said
FENCE = 3  # times the distance of the quartiles: beyond that, Tukey calls a value far out
SPAN_MS, DEPTH = 20.0, 20.0  # differences below that are nobody's concern
CHANCE = 4  # times the square root of a count: how far chance alone takes it


class BaselineRange(NamedTuple):
    low: float
    high: float


class Baseline(NamedTuple):
    """Quartiles of so many weeks, each a value that was seen: a quarter of them lay at or below ``lower``."""

    lower: float
    median: float
    upper: float
    weeks: int

    def band(self, least: float) -> BaselineRange:
        """As wide as the weeks differed, at least half of the median and ``least`` to either side; never below 0."""
        far, wide = FENCE * (self.upper - self.lower), max(self.median / 2, least)
        return BaselineRange(
            max(0.0, min(self.lower - far, self.median - wide)), max(self.upper + far, self.median + wide)
        )


class BaselineSet(NamedTuple):
    """Of one kind in one step; None: too few weeks. Spans in milliseconds, ``failed`` is a share of 0 to 1."""

    messages: Baseline | None
    failures: Baseline | None
    failed: Baseline | None  # of the weeks in which anything finished
    half: Baseline | None  # of those in which anything was timed
    nearly_all: Baseline | None
    all_but_one: Baseline | None  # 99 in 100


def of_messages(usual: Baseline) -> BaselineRange:
    """One more is given: where nothing is usual, five are needed."""
    return usual.band(CHANCE * math.sqrt(usual.median + 1))


def of_share(usual: Baseline, messages: int) -> BaselineRange:
    """Of so many messages: one failure more says nothing of one, little of ten, and much of a thousand."""
    band = usual.band(CHANCE * math.sqrt(usual.median * messages + 1) / messages)
    return band._replace(high=min(1.0, band.high))


def of_span(usual: Baseline) -> BaselineRange:
    return usual.band(SPAN_MS)


def of_depth(usual: Baseline) -> BaselineRange:
    return usual.band(DEPTH)
