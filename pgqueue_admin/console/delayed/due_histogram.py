"""Histogram of due times: the messages of all delayed tables by time span."""

from collections.abc import Sequence
from typing import NamedTuple

from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.monitor.delayed import MOST

WORDS = (
    "Overdue", "Within a minute", "Within 10 minutes", "Within an hour", "Within 6 hours", "Within a day",
    "Within a week", "Later",
)  # fmt: skip


class DueBucket(NamedTuple):
    """``percent`` of the largest bucket: the length of its bar."""

    word: str
    messages: int
    percent: float
    is_overdue: bool


class DueHistogram(NamedTuple):
    stretches: list[DueBucket]
    is_cut: bool  # some table may have more messages than the soonest ones counted

    @property
    def total(self) -> int:
        return sum(stretch.messages for stretch in self.stretches)

    @property
    def sentence(self) -> str:
        """The bars in words, for screen readers."""
        told = [f"{each.word.lower()} {format_int(each.messages)}" for each in self.stretches if each.messages]
        return "; ".join(told)


def added_up(tables: Sequence[Sequence[int]]) -> DueHistogram:
    counts = [sum(column) for column in zip(*tables, strict=True)] if tables else [0] * len(WORDS)
    largest = max(counts) or 1
    named = zip(WORDS, counts, strict=True)
    stretches = [DueBucket(word, count, round(100 * count / largest, 1), word == WORDS[0]) for word, count in named]
    return DueHistogram(stretches, any(sum(table) >= MOST for table in tables))
