"""Durations as a heat map: time across, bands of latency up, number of messages as shade."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pgqueue_admin.console import components
from pgqueue_admin.console.trends import drilldown
from pgqueue_admin.console.trends.coverage import SO_FAR, Coverage
from pgqueue_admin.formatting.numbers import format_int, pluralize
from pgqueue_admin.history.rollups import latency_bands as bands
from pgqueue_admin.history.rollups.queries import MessageCounts, Timings, TrendQuery

COLUMNS = 96  # at most: more steps share columns


@dataclass(frozen=True, slots=True)
class HeatColumn:
    """``numbers``: one per band, from the fastest found to the slowest."""

    at: datetime
    until: datetime
    numbers: list[int]
    failed: int
    asked: TrendQuery
    known: str  # as Coverage has it
    measure: str
    first: int  # the band of the first number

    @property
    def messages(self) -> str:
        """The address of its failed messages. Made where it is shown: a chart has no use for a hundred."""
        return drilldown.died(self.asked, self.at, self.until - self.at)

    @property
    def is_so_far(self) -> bool:
        return self.known == SO_FAR

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Each number, and the address of its messages; empty for 0."""
        step = self.until - self.at
        return [
            (format_int(number), drilldown.took(self.asked, self.at, step, self.measure, band) if number else "")
            for band, number in enumerate(self.numbers, self.first)
        ]


class Heatmap:
    def __init__(
        self, reach: Coverage, timings: Mapping[int, Timings], counts: Mapping[int, MessageCounts], measure: str
    ):
        self.reach, self.window, self.timings, self.counts = reach, reach.window, timings, counts
        self.measure = measure

    @cached_property
    def bands(self) -> range:
        """Bands from the fastest found to the slowest; empty if nothing was timed."""
        found = {band for timing in self.timings.values() for band in timing.bands}
        return range(min(found), max(found) + 1) if found else range(0)

    @property
    def words(self) -> list[str]:
        return [bands.words(band) for band in self.bands]

    @cached_property
    def columns(self) -> list[HeatColumn]:
        """Oldest first, also those without timings."""
        at = self.window.instants
        return [self._column(at[place : place + self.together]) for place in range(0, len(at), self.together)]

    @cached_property
    def together(self) -> int:
        """Number of steps that share a column; the last column may have fewer."""
        return -(-len(self.window.instants) // COLUMNS)

    @property
    def timed(self) -> list[HeatColumn]:
        """Newest first."""
        return [column for column in reversed(self.columns) if any(column.numbers)]

    @cached_property
    def most(self) -> int:
        """The largest number in a cell."""
        return max(number for column in self.columns for number in column.numbers)

    @property
    def sentence(self) -> str:
        """The chart in words, for people who do not see it."""
        sums = [sum(column) for column in zip(*(column.numbers for column in self.columns), strict=True)]
        common = max(range(len(sums)), key=sums.__getitem__)
        slowest = next(column for column in reversed(self.columns) if column.numbers[-1])
        return (
            f"{pluralize(sum(sums), 'message')} timed. Most, {format_int(sums[common])}, took {self.words[common]}; "
            f"the slowest, {format_int(sums[-1])}, took {self.words[-1]}, "
            f"last from {components.sentence_time(slowest.at)} on."
        )

    @property
    def as_json(self) -> str:
        """Data for the readout of a cell: columns by their beginning."""
        told: dict[str, Any] = {"at": [int(column.at.timestamp()) for column in self.columns], "words": self.words}
        told |= {"first": self.bands.start, "cell": drilldown.took_pattern(self.window.asked, self.measure)}
        told["numbers"] = [column.numbers for column in self.columns]
        return json.dumps(told, separators=(",", ":"))

    def _column(self, steps: list[int]) -> HeatColumn:
        at, until = (datetime.fromtimestamp(each, UTC) for each in (steps[0], steps[-1] + self._step))
        found = [timing.bands for each in steps if (timing := self.timings.get(each))]
        numbers = [sum(each.get(band, 0) for each in found) for band in self.bands]
        failed = sum(each.failed for step in steps if (each := self.counts.get(step)))
        known = self.reach.known(steps[0], int(until.timestamp()))
        return HeatColumn(at, until, numbers, failed, self.window.asked, known, self.measure, self.bands.start)

    @property
    def _step(self) -> int:
        return int(self.window.step.total_seconds())
