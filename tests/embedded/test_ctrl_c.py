"""Work that a Ctrl-C must not cut short is finished before the interrupt is handled."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.osproc import ctrl_c


def interrupted(work: Callable[[], Any]) -> None:
    with ctrl_c.held_back():
        signal.raise_signal(signal.SIGINT)
        work()


def test_held_back_interrupt_is_raised_at_the_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: done.append(True))
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_failure_in_the_block_wins_over_the_interrupt() -> None:
    with pytest.raises(ZeroDivisionError):
        interrupted(lambda: 1 / 0)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_thread_leaves_the_signal_handler_alone() -> None:
    found = []

    def work() -> None:
        with ctrl_c.held_back():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
