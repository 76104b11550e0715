"""The pipe that interrupts a wait."""

import fcntl
import os
import resource
import time
from collections.abc import Iterator

import pytest

from pgqueue_admin.workers.processes.wakeup_pipe import WakeupPipe

HIGH = 1_100  # select() accepts none above 1023


class Pipe:
    """A pipe whose reading end has a high descriptor, as in a process with many open files."""

    def __init__(self) -> None:
        low, self.write = os.pipe()
        self.read = fcntl.fcntl(low, fcntl.F_DUPFD, HIGH)
        os.close(low)

    def fileno(self) -> int:
        return self.read


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], HIGH + 100), before[1]))
    pipe = Pipe()
    yield pipe
    os.close(pipe.read)
    os.close(pipe.write)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_wait_ends_when_another_pipe_is_readable(pipe: Pipe) -> None:
    waker = WakeupPipe()
    os.write(pipe.write, b"1")
    waker.wait(None, pipe)
    os.read(pipe.read, 1)
    waker.set()
    waker.wait(None, pipe)
    began = time.monotonic()
    waker.wait(0.05, pipe)
    assert time.monotonic() - began >= 0.05, "what was set is taken"
    waker.wait(0)
    waker.wait(-1)
