"""Waits on conditions, never on time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 10, what: str = "") -> T:
    """The first true answer of ``condition``; AssertionError with ``what`` when there is none in ``seconds``."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()  # never set: its wait yields the processor between two looks
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        pause.wait(0.02)
    return answer
