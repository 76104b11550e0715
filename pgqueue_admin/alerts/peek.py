"""T15 and T16: what is wrong with a peek delay. One function for page, log, check and the form's preview."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from pgqueue_admin.alerts.found import CRITICAL, WARNING, Found
from pgqueue_admin.records.endpoint_faults import PEEK_RANGE_MS
from pgqueue_admin.transport.type_names import short_type
from pgqueue_admin.wording import warnings

LEAST_MS, MOST_MS = PEEK_RANGE_MS


class PeekSettings(Protocol):
    """An endpoint's row, a form's cleaned values, anything with these three. Not ours = only declared here (T18)."""

    @property
    def name(self) -> str: ...
    @property
    def ours(self) -> bool: ...
    @property
    def peek_delay_ms(self) -> int: ...


class Ttbr(Protocol):
    """The smallest time to be received that was seen of a message type: a SmallestTtbr row, or a Lifetime."""

    @property
    def message_type(self) -> str: ...
    @property
    def ttbr_ms(self) -> int: ...


class Lifetime(NamedTuple):
    message_type: str
    ttbr_ms: int


def faults(settings: PeekSettings, ttbrs: Iterable[Ttbr] = ()) -> list[Found]:
    """All that is wrong, at once: the delay's range first, then each message type that may be lost."""
    return [*out_of_range(settings), *conflicts(settings, ttbrs)]


def out_of_range(settings: PeekSettings) -> Iterator[Found]:
    delay = settings.peek_delay_ms
    if delay > MOST_MS:
        yield Found("peek_range", settings.name, warnings.peek_too_long(delay, settings.ours))
    elif delay < LEAST_MS:
        yield Found("peek_range", settings.name, warnings.peek_too_short(delay, settings.ours))


def conflicts(settings: PeekSettings, ttbrs: Iterable[Ttbr]) -> Iterator[Found]:
    """Longer than the TTBR is a conflict, exactly as long is at risk."""
    for ttbr in sorted(ttbrs, key=lambda each: (each.ttbr_ms, each.message_type)):
        if settings.peek_delay_ms >= ttbr.ttbr_ms:
            lost = settings.peek_delay_ms > ttbr.ttbr_ms
            yield Found(
                "ttbr_conflict",
                settings.name,
                warnings.ttbr_conflict(
                    short_type(ttbr.message_type), ttbr.ttbr_ms, settings.peek_delay_ms, settings.ours
                ),
                severity=CRITICAL if lost else WARNING,
                cause=ttbr.message_type,
            )
