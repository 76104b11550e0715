"""One time limit for all statements that a page or a caller waits for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ends_at: ContextVar[float] = ContextVar("ends_at", default=float("inf"))


def begin(seconds: float) -> None:
    _ends_at.set(time.monotonic() + seconds)


def end() -> None:
    _ends_at.set(float("inf"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Set a shorter limit for a part, so that it leaves time for the rest."""
    before = _ends_at.set(min(_ends_at.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _ends_at.reset(before)


def left() -> float:
    """Seconds left, 0 after the limit; infinity without one."""
    return max(0.0, _ends_at.get() - time.monotonic())
