"""Logs of processes that run for months are bounded, and keep the latest lines."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.workers.reporting import run_directory
from pgqueue_admin.workers.supervisor.managed_process import ManagedProcess
from pgqueue_admin.workers.supervisor.role import Role, RoleKey
from pgqueue_admin.workers.supervisor.supervisor import Supervisor
from pgqueue_admin.workers.supervisor.supervisor_store import SupervisorStore
from tests.waiting import until

LINES, WIDTH = 60_000, 100
TALKING = f"""
for line in range({LINES}):
    print(f"{{line:0{WIDTH - 1}d}}")
with open(r"%s") as more:
    for line in more:
        print(line, end="", flush=True)
"""


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """The process prints whatever is written to it."""
    os.mkfifo(tmp_path / "more")
    return tmp_path / "more"


@pytest.fixture
def talking(more: Path) -> Iterator[ManagedProcess]:
    """A running process that has printed 6 MB."""
    process = ManagedProcess(
        Role(RoleKey("endpoint", "talking"), ("shell", "-c", TALKING % more), settings_module="tests.settings"), 1
    )
    until(lambda: process.log.read_bytes().endswith(b"%d\n" % (LINES - 1)), what="all is said")
    yield process
    process.kill()
    until(lambda: process.exit_code() is not None)


def test_a_log_is_put_aside_while_its_process_writes_on(talking: ManagedProcess, more: Path) -> None:
    Supervisor(SupervisorStore()).tick()
    aside = talking.log.with_suffix(".log.1").read_text().splitlines()
    assert aside == [f"{line:0{WIDTH - 1}d}" for line in range(LINES - run_directory.LARGEST_LOG // WIDTH, LINES)]
    assert talking.log.read_bytes() == b""
    with more.open("w") as said:
        said.write("a line after it\n")
    assert until(talking.log.read_bytes) == b"a line after it\n", "at the front: no hole is left before it"
    assert talking.last_line() == "a line after it"


def test_a_small_log_stays(talking: ManagedProcess) -> None:
    small = run_directory.plain_log("small")
    small.write_text("one line\n")
    Supervisor(SupervisorStore()).tick()
    assert small.read_text() == "one line\n"
    assert not small.with_suffix(".log.1").exists()


def test_last_line_is_found_after_the_log_was_truncated(tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    log.write_text("KeyError: 7\n")
    assert run_directory.last_line(log, since=4_000_000) == "KeyError: 7"
    assert run_directory.last_line(log, since=12) == "", "what another one said before it"
