"""The processes of one role: one that cannot be started, and one that started others and died."""

import logging
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import InFlightAtCrash
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.workers.reporting import run_directory
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.supervisor.managed_process import ManagedProcess
from pgqueue_admin.workers.supervisor.process_group import ProcessGroup
from pgqueue_admin.workers.supervisor.process_recorder import ProcessRecorder
from pgqueue_admin.workers.supervisor.role import MemoryLimit, Role, RoleKey
from tests.waiting import until
from tests.workers.deadly.handlers import TYPE
from tests.workers.host import House, alive, want

FORSAKING = """
import os, subprocess
print("started", subprocess.Popen(["sleep", "600"]).pid, flush=True)
os._exit(3)
"""

EATING = """
import signal
eaten = []
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda *_: eaten.append(bytearray(400_000_000)))
eaten.append(bytearray(200_000_000))
while True:
    signal.pause()
"""


def test_process_that_cannot_be_started_leaves_the_supervisor_running(caplog: pytest.LogCaptureFixture) -> None:
    """No free process, a full disk, an unwritable log: if it ended the supervisor, all other children would die."""
    unwritable = run_directory.log_file("unwritable", 1)
    unwritable.mkdir()
    group = ProcessGroup(Role(RoleKey("endpoint", "unwritable"), ("check",), want=2), ProcessRecorder())
    with caplog.at_level(logging.WARNING):
        group.reconcile(2)
    assert (group.processes, group.backoff.waiting, group.backoff.crashes) == ([], True, 1)
    assert "unwritable cannot be started" in caplog.text
    unwritable.rmdir()


def test_process_that_crashed_before_its_drain_reports_its_messages() -> None:
    """It dies between two looks: checking on it must not discard its messages."""
    role = Role(RoleKey("endpoint", "crashed"), ("shell", "-c", "import signal; signal.pause()"), drain_seconds=60)
    process = ManagedProcess(role, 1)
    held = IncomingMessage(
        Address("public", "Sales"), str(uuid4()), 7, False, "", b"", {"NServiceBus.MessageId": "m-1"}
    )
    InFlightFile(run_directory.in_hand_file(process.identity)).take(0, held)
    os.kill(process.identity.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.identity.pid, os.WEXITED | os.WNOWAIT)
    process.drain(60)
    assert process.exit_code() == -signal.SIGKILL
    assert [each.message_id for each in process.held] == ["m-1"]
    assert not process.left_as_asked
    process.drain(60)


def test_children_of_a_dead_process_are_ended() -> None:
    """Otherwise each crash would leave a handler's child processes behind."""
    role = Role(RoleKey("endpoint", "forsaking"), ("shell", "-c", FORSAKING), settings_module="tests.settings")
    group = ProcessGroup(role, ProcessRecorder())
    group.reconcile(1)
    (process,) = group.processes
    until_reaped(group, lambda: not group.processes)
    started = re.search(r"started (\d+)", process.log.read_text())
    assert process.exit_code() == 3
    assert started
    until(lambda: not alive(int(started[1])), 5, "what it started has ended, too")


def test_back_off_grows_once_for_a_process_that_breaks_both_limits() -> None:
    """Above the first limit its successor starts; exceeding the second is the same crash."""
    role = Role(RoleKey("endpoint", "eating"), ("shell", "-c", EATING), settings_module="tests.settings")
    group = ProcessGroup(replace(role, ceiling=MemoryLimit(200, 500), drain_seconds=600.0), ProcessRecorder())
    before: ManagedProcess | None = None
    for crashes in (1, 2, 3):
        group.start_now()
        group.reconcile(1)
        eating = group.processes[-1]
        if before:
            os.kill(before.identity.pid, signal.SIGUSR1)
            until_reaped(group, lambda: before not in group.processes)  # noqa: B023
        until_reaped(group, lambda: eating.draining)  # noqa: B023
        assert group.backoff.crashes == crashes
        before = eating
    eating.kill()
    until_reaped(group, lambda: not group.processes)


def until_reaped(group: ProcessGroup, condition: Callable[[], bool]) -> None:
    def look() -> bool:
        group.reap()
        return condition()

    until(look)


# A process above its memory limit drains and is replaced; it finishes its message first.
def test_the_limit_that_is_broken_is_named() -> None:
    ceiling = MemoryLimit(100, 200)
    assert (ceiling.broken_drain(100_000_000), ceiling.broken_kill(100_000_000)) == ("", "")
    assert ceiling.broken_drain(150_000_000) == "150\u00a0MB, above its limit of 100\u00a0MB"
    assert ceiling.broken_kill(250_000_000) == "250\u00a0MB, above its limit of 200\u00a0MB"
    assert MemoryLimit().broken_kill(10**15) == ""


def test_process_at_its_memory_limit_drains_and_is_replaced(deadly: House, sales: Endpoint, look: Connection) -> None:
    want(1, concurrency=1, memory_mb=200)
    deadly.supervise()
    (first,) = deadly.running(1)
    sales.send("Sales", {"way": "hoard"}, type=TYPE)
    until(lambda: deadly.rows(pid=first.pid, state="stopped"), what="drained")
    first.refresh_from_db()
    assert first.exit_code == 0
    assert first.last_error.startswith("drained at ")
    assert first.last_error.endswith(", above its limit of 200\u00a0MB")
    assert look.value('select count(*) from "Sales"') == 0, "finished, not rolled back"
    (second,) = deadly.running(1)
    assert second.pid != first.pid
    assert not InFlightAtCrash.objects.exists()
