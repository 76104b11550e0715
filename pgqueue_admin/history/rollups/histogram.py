"""Mergeable percentiles: counts in buckets of one per cent, so that two histograms add up exactly."""

import math
from collections.abc import Mapping

RELATIVE_ERROR = 0.01
GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
LOG_GAMMA = math.log(GAMMA)
NOTHING = -1  # the bucket of zero and below


def bucket(value: float) -> int:
    return NOTHING if value <= 0 else math.ceil(math.log(value) / LOG_GAMMA)


def value(number: int) -> float:
    """The value that represents a bucket: within one per cent of each of its values."""
    return 0.0 if number == NOTHING else 2 * GAMMA**number / (GAMMA + 1)


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The value below which ``share`` (0 to 1) of the counts lie, as in percentile_disc; None if empty."""
    total = sum(counts.values())
    wanted, upto = max(1, math.ceil(total * share)), 0
    for number in sorted(counts):
        upto += counts[number]
        if upto >= wanted:
            return value(number)
    return None
