"""Detects anomalies in an hour, one rule per kind, with the numbers behind it. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from pgqueue_admin.history.rollups import baseline
from pgqueue_admin.history.rollups.baseline import Baseline, BaselineRange, BaselineSet

SLOWER, FAILURES, SILENCE, GROWTH = "slower", "failures", "silence", "growth"


class ObservedHour(NamedTuple):
    """One hour of one kind. ``p95`` and ``fifth`` slowest: milliseconds of critical time; None: too few messages.

    ``timed``: how many of them have a critical time; None: not counted.
    """

    messages: int = 0
    failed: int = 0
    p95: float | None = None
    fifth: float | None = None
    timed: int | None = None


class Detection(NamedTuple):
    """``seen``, ``usual`` and ``band`` in milliseconds (slower) or messages (all others)."""

    kind: str
    observed: float
    usual: Baseline
    band: BaselineRange


def of_messages(seen: ObservedHour, known: BaselineSet) -> Iterator[Detection]:
    yield from _slower(seen, known.nearly_all)
    yield from _failures(seen, known)
    yield from _silence(seen, known)


def of_depth(median: int, known: Baseline | None) -> Iterator[Detection]:
    """Growth: for half of the hour the queue was deeper than the band."""
    if known is None:
        return
    band = baseline.of_depth(known)
    if median > band.high:
        yield Detection(GROWTH, median, known, band)


def _slower(seen: ObservedHour, known: Baseline | None) -> Iterator[Detection]:
    """The 95th percentile is above the band, and at least five messages are: one or two are chance."""
    if known is None or seen.p95 is None or seen.fifth is None:
        return
    band = baseline.of_span(known)
    if min(seen.p95, seen.fifth) > band.high:
        yield Detection(SLOWER, seen.p95, known, band)


def _failures(seen: ObservedHour, known: BaselineSet) -> Iterator[Detection]:
    """Failures above the band in number and in share: twice the messages may bring twice the failures."""
    if known.failures is None or not seen.failed:
        return
    band = baseline.of_messages(known.failures)
    if seen.failed > band.high and _is_larger_share(seen, known.failed):
        yield Detection(FAILURES, seen.failed, known.failures, band)


def _is_larger_share(seen: ObservedHour, known: Baseline | None) -> bool:
    """If only failures are read, always or in that hour of the week, their number alone decides."""
    if known is None or known.lower == 1:
        return seen.failed == seen.messages
    return seen.failed / seen.messages > baseline.of_share(known, seen.messages).high


def _silence(seen: ObservedHour, known: BaselineSet) -> Iterator[Detection]:
    """No messages at all, while the band excludes zero. An end of failures is no silence."""
    if known.messages is None or known.failed is None or known.failed.lower == 1 or seen.messages:
        return
    band = baseline.of_messages(known.messages)
    if band.low > 0:
        yield Detection(SILENCE, 0, known.messages, band)
