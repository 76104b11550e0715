"""The processes of one role: one that cannot even be started, and one that started others and died."""

import logging
import os
import re
import signal
from uuid import uuid4

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire.message import IncomingMessage
from pgqueue_admin.workers import run_folder
from pgqueue_admin.workers.group import Group
from pgqueue_admin.workers.in_hand import Hands
from pgqueue_admin.workers.ledger import Ledger
from pgqueue_admin.workers.managed import Managed
from pgqueue_admin.workers.role import Key, Role
from tests.waiting import until
from tests.workers.house import alive

FORSAKING = """
import os, subprocess
print("started", subprocess.Popen(["sleep", "600"]).pid, flush=True)
os._exit(3)
"""


def test_what_cannot_be_started_does_not_end_the_supervisor(caplog: pytest.LogCaptureFixture) -> None:
    """No process left, a full disk, a log that cannot be written: all other children would die with it."""
    unwritable = run_folder.log_file("unwritable", 1)
    unwritable.mkdir()
    group = Group(Role(Key("endpoint", "unwritable"), ("check",), want=2), Ledger())
    with caplog.at_level(logging.WARNING):
        group.reconcile(2)
    assert (group.processes, group.backoff.waiting, group.backoff.crashes) == ([], True, 1)
    assert "unwritable cannot be started" in caplog.text
    unwritable.rmdir()


def test_one_that_crashed_before_it_was_asked_to_end_is_told_with_what_it_had() -> None:
    """Between two looks: to ask a dead one must not take it away."""
    role = Role(Key("endpoint", "crashed"), ("shell", "-c", "import signal; signal.pause()"), drain_seconds=60)
    process = Managed(role, 1)
    held = IncomingMessage(
        Address("public", "Sales"), str(uuid4()), 7, False, "", b"", {"NServiceBus.MessageId": "m-1"}
    )
    Hands(run_folder.in_hand_file(process.identity)).take(0, held)
    os.kill(process.identity.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.identity.pid, os.WEXITED | os.WNOWAIT)
    process.drain(60)
    assert process.exit_code() == -signal.SIGKILL
    assert [each.message_id for each in process.held] == ["m-1"]
    assert not process.left_as_asked
    process.drain(60)


def test_what_a_dead_process_had_started_is_ended_with_it() -> None:
    """A handler's own processes would be left behind, one more at each death."""
    role = Role(Key("endpoint", "forsaking"), ("shell", "-c", FORSAKING), settings_module="tests.settings")
    group = Group(role, Ledger())
    group.reconcile(1)
    (process,) = group.processes
    until(lambda: group.reap() or not group.processes, what="it has ended")  # type: ignore[func-returns-value]
    started = re.search(r"started (\d+)", process.log.read_text())
    assert process.exit_code() == 3
    assert started
    until(lambda: not alive(int(started[1])), 5, "what it started has ended, too")
