"""A group of processes that cannot even be started: slower each time, and the others go on."""

import logging

import pytest

from pgqueue_admin.workers import run_folder
from pgqueue_admin.workers.group import Group
from pgqueue_admin.workers.ledger import Ledger
from pgqueue_admin.workers.role import Key, Role


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
