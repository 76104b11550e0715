"""The heat map as SVG: one path per shade, so that a thousand cells are five elements."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from math import ceil, sqrt
from typing import NamedTuple

from django.utils import timezone

from pgqueue_admin.console.trends.heatmap import Heatmap
from pgqueue_admin.formatting import times
from pgqueue_admin.history.rollups import latency_bands

HEIGHT = 180  # of the cells, in pixels; a line of times is below
_APART = 26  # pixels between two labels of a length
_A_DAY, _MOST_OF_A_YEAR = 90_000, 25_920_000  # seconds; above each, the labels of the axis change
SHADES = ("0.2", "0.38", "0.56", "0.76", "1")  # of the series' colour, the fewest first


class HeatShade(NamedTuple):
    opacity: str
    path: str


class HeatLine(NamedTuple):
    """A hairline at the end of a band."""

    y: float
    words: str


class HeatMark(NamedTuple):
    """A time below the cells. ``x``: per cent of the width."""

    x: int
    anchor: str
    words: str


class HeatmapSvg:
    """A step is one wide and a band one high; the drawing is stretched to the available width."""

    def __init__(self, heat: Heatmap):
        self.heat, self.width, self.bands = heat, len(heat.window.instants), len(heat.bands)
        self.height, self.keys = HEIGHT, SHADES

    @property
    def shades(self) -> list[HeatShade]:
        runs: dict[int, list[str]] = {}
        for row in range(self.bands):
            for shade, x, length in self._runs(row):
                runs.setdefault(shade, []).append(f"M{x} {self.bands - row - 1}h{length}v1h-{length}z")
        return [HeatShade(SHADES[shade], "".join(paths)) for shade, paths in sorted(runs.items())]

    @property
    def lines(self) -> list[HeatLine]:
        """Hairlines at the ends of bands, as many as fit."""
        high = HEIGHT / self.bands
        every = ceil(_APART / high)
        return [
            HeatLine(round(HEIGHT - (row + 1) * high, 1), latency_bands.end(band))
            for row, band in enumerate(self.heat.bands[:-1])
            if row % every == every - 1 or self.bands == 1
        ]

    @property
    def marks(self) -> list[HeatMark]:
        """Times at the ends and quarters, as in the other charts."""
        at = self.heat.window.instants
        first, last = at[0], at[-1] + self.heat.window.step.total_seconds()
        anchors = ("start", "middle", "middle", "middle", "end")
        return [
            HeatMark(25 * place, anchor, _said(first + (last - first) * place / 4, last - first))
            for place, anchor in enumerate(anchors)
        ]

    def _runs(self, row: int) -> Iterator[tuple[int, int, int]]:
        """Runs of one shade: which, where, how long."""
        x = 0
        for shade, run in groupby(self._shade(column.numbers[row]) for column in self.heat.columns):
            upto = min(self.width, x + len(list(run)) * self.heat.together)
            if shade is not None:
                yield shade, x, upto - x
            x = upto

    def _shade(self, number: int) -> int | None:
        """Scale by the square root: one message among thousands is visible, and crowded cells still differ."""
        return ceil(len(SHADES) * sqrt(number / self.heat.most)) - 1 if number else None


def _said(at: float, length: float) -> str:
    """A label that tells the quarters of the window apart: the time, the day, or for most of a year the month."""
    local = times.local(datetime.fromtimestamp(at, UTC), timezone.get_current_timezone())
    if length > _MOST_OF_A_YEAR:
        return f"{local:%b %Y}"
    return f"{local.day} {local:%b}" if length > _A_DAY else f"{local:%H:%M}"
