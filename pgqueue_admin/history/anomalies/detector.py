"""Detects anomalies in an hour, one rule per kind, with the numbers behind it. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from pgqueue_admin.history.rollups import baseline
from pgqueue_admin.history.rollups.baseline import Baseline, BaselineRange, BaselineSet

SLOWER, FAILURES, SILENCE, GROWTH = "slower", "failures", "silence", "growth"


class ObservedHour(NamedTuple):
    """One hour of one kind. ``p95`` and ``fifth`` slowest: milliseconds of critical time; None: too few.

    ``timed``: of how many that is known; None: nobody counted them.
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
    """For half of the hour it was deeper than the band is high."""
    if known is None:
        return
    band = baseline.of_depth(known)
    if median > band.high:
        yield Detection(GROWTH, median, known, band)


def _slower(seen: ObservedHour, known: Baseline | None) -> Iterator[Detection]:
    """19 in 20 took longer than the band is high, and five messages at least did: one or two are chance."""
    if known is None or seen.p95 is None or seen.fifth is None:
        return
    band = baseline.of_span(known)
    if min(seen.p95, seen.fifth) > band.high:
        yield Detection(SLOWER, seen.p95, known, band)


def _failures(seen: ObservedHour, known: BaselineSet) -> Iterator[Detection]:
    """More than the band holds, and a larger share: where twice as many come, twice as many may fail."""
    if known.failures is None or not seen.failed:
        return
    band = baseline.of_messages(known.failures)
    if seen.failed > band.high and _is_larger_share(seen, known.failed):
        yield Detection(FAILURES, seen.failed, known.failures, band)


def _is_larger_share(seen: ObservedHour, known: Baseline | None) -> bool:
    """Where only failures are read, as a rule or in that hour of the week, their number alone has to tell."""
    if known is None or known.lower == 1:
        return seen.failed == seen.messages
    return seen.failed / seen.messages > baseline.of_share(known, seen.messages).high


def _silence(seen: ObservedHour, known: BaselineSet) -> Iterator[Detection]:
    """Nothing at all, where the band does not reach down to nothing. That failures have ended is no silence."""
    if known.messages is None or known.failed is None or known.failed.lower == 1 or seen.messages:
        return
    band = baseline.of_messages(known.messages)
    if band.low > 0:
        yield Detection(SILENCE, 0, known.messages, band)
