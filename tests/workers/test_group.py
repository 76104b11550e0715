"""The processes of one role: one that cannot even be started, and one that started others and died."""

import logging
import re

import pytest

from pgqueue_admin.workers import run_folder
from pgqueue_admin.workers.group import Group
from pgqueue_admin.workers.ledger import Ledger
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
