"""One time limit for all that is looked at on behalf of somebody who waits: a page, with however many statements."""

import time
from contextvars import ContextVar

_ends_at: ContextVar[float] = ContextVar("ends_at", default=float("inf"))


def begin(seconds: float) -> None:
    _ends_at.set(time.monotonic() + seconds)


def end() -> None:
    _ends_at.set(float("inf"))


def left() -> float:
    """Seconds, 0 when they are over; infinity where nobody set a limit."""
    return max(0.0, _ends_at.get() - time.monotonic())
