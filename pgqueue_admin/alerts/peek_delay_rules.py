"""T15 and T16: judges a peek delay. One function for page, log, check and the form's preview."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from pgqueue_admin.alerts.finding import CRITICAL, WARNING, Finding
from pgqueue_admin.formatting import warnings
from pgqueue_admin.history.anomalies.ttbr_risk import DAYS, SAFE, QueueWaits
from pgqueue_admin.models import MinimumTtbr
from pgqueue_admin.models.endpoint_validation import PEEK_RANGE_MS
from pgqueue_admin.transport.wire.type_names import short_type

LEAST_MS, MOST_MS = PEEK_RANGE_MS
ENOUGH = 20  # messages: fewer give no meaningful shares
ALLOWED = 1 - SAFE


class PeekSettings(Protocol):
    """An endpoint's row, a form's cleaned values, anything with these three. Not ``ours``: only declared here (T18)."""

    @property
    def name(self) -> str: ...
    @property
    def ours(self) -> bool: ...
    @property
    def peek_delay_ms(self) -> int: ...


class PeekDelayRisk(NamedTuple):
    """A message type, its time to be received, and what was observed at a peek delay."""

    message_type: str
    ttbr_ms: int
    waits: QueueWaits
    lost: float  # shares
    at_risk: float
    safe_ms: int | None

    @property
    def is_telling(self) -> bool:
        return self.waits.messages >= ENOUGH and max(self.lost, self.at_risk) > ALLOWED


def faults(settings: PeekSettings, ttbrs: Iterable[MinimumTtbr] = ()) -> list[Finding]:
    """Return all faults: the delay's range first, then each message type that may be lost."""
    return [*out_of_range(settings), *conflicts(settings, ttbrs)]


def out_of_range(settings: PeekSettings) -> Iterator[Finding]:
    delay = settings.peek_delay_ms
    if delay > MOST_MS:
        yield Finding("peek_range", settings.name, warnings.peek_too_long(delay, settings.ours))
    elif delay < LEAST_MS:
        yield Finding("peek_range", settings.name, warnings.peek_too_short(delay, settings.ours))


def risks(settings: PeekSettings, ttbrs: Iterable[MinimumTtbr]) -> list[PeekDelayRisk]:
    """Return each type with a time to be received, shortest first."""
    return [_risk(settings, each) for each in sorted(ttbrs, key=lambda each: (each.ttbr_ms, each.message_type))]


def conflicts(settings: PeekSettings, ttbrs: Iterable[MinimumTtbr]) -> Iterator[Finding]:
    """Longer than the TTBR is a conflict, equal is at risk; below it, observations decide."""
    for risk in risks(settings, ttbrs):
        delay, name = settings.peek_delay_ms, short_type(risk.message_type)
        if delay >= risk.ttbr_ms:
            said = warnings.ttbr_conflict(name, risk.ttbr_ms, delay, settings.ours)
            lost = delay > risk.ttbr_ms
        elif risk.is_telling:
            said = warnings.ttbr_risk(name, risk.ttbr_ms, delay, settings.ours, _observed(risk))
            lost = risk.lost > ALLOWED
        else:
            continue
        severity = CRITICAL if lost else WARNING
        yield Finding("ttbr_conflict", settings.name, said, severity=severity, cause=risk.message_type)


def _risk(settings: PeekSettings, ttbr: MinimumTtbr) -> PeekDelayRisk:
    waits = QueueWaits(dict(zip(ttbr.delivery_buckets, ttbr.delivery_counts, strict=True)), ttbr.expired)
    lost, at_risk = waits.lost(ttbr.ttbr_ms), waits.at_risk(ttbr.ttbr_ms, settings.peek_delay_ms)
    return PeekDelayRisk(ttbr.message_type, ttbr.ttbr_ms, waits, lost, at_risk, waits.safe_delay_ms(ttbr.ttbr_ms))


def _observed(risk: PeekDelayRisk) -> warnings.Observed:
    return warnings.Observed(risk.waits.messages, risk.lost, risk.at_risk, risk.safe_ms, DAYS)
