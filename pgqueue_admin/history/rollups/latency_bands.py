"""Latency bands for people, cut at bucket boundaries, so that their counts are exact."""

from math import ceil

from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.history.rollups.histogram import GAMMA, bucket

_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
# milliseconds: the end of each band, within the two per cent of its bucket; one more band follows the last
ENDS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000,
    _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 30 * _MINUTE, _HOUR, 6 * _HOUR, _DAY,
)  # fmt: skip
STARTS = [bucket(end) + 1 for end in ENDS]  # first bucket of each band after the first


def whole(band: int) -> tuple[int, int | None]:
    """The least and greatest whole millisecond that a band counts; None: no end."""
    return _last(band - 1) + 1 if band else 0, _last(band) if band < len(ENDS) else None


def _last(band: int) -> int:
    """Powers are inexact at a bucket's edge, so ``bucket`` itself decides."""
    about = ceil(GAMMA ** bucket(ENDS[band])) + 1
    return next(each for each in range(about, -1, -1) if bucket(each) < STARTS[band])


def words(band: int) -> str:
    """``200 ms to 500 ms``."""
    if band == 0:
        return f"up to {end(0)}"
    return f"{end(band - 1)} to {end(band)}" if band < len(ENDS) else f"over {end(band - 1)}"


def end(band: int) -> str:
    return plain(ENDS[band] / 1000)


def limits(band: int) -> tuple[int, int | None]:
    """Milliseconds: above the first, up to the second; None: no end."""
    return ENDS[band - 1] if band else 0, ENDS[band] if band < len(ENDS) else None
