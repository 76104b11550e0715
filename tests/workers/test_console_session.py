"""A thread's session on the console's database that accepts connections but no writes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects import Connection
from pgqueue_admin.workers.processes.console_session import ConsoleSession
from pgqueue_admin.workers.reporting import process_identity
from pgqueue_admin.workers.supervisor.process_recorder import record
from tests.console.sampled import read_only
from tests.waiting import until


class Beating:
    """Work that writes at each beat, like all of ours."""

    def __init__(self) -> None:
        self.sessions = self.beats = 0

    def connected(self, connection: Connection) -> None:
        self.sessions += 1

    def heard(self, names: list[str]) -> None: ...

    def beat(self) -> None:
        record(process_identity.mine(), {"role": "endpoint", "heartbeat_at": Now()})
        self.beats += 1


@pytest.fixture
def work() -> Beating:
    return Beating()


@pytest.fixture
def link(console_database: str, work: Beating) -> Iterator[ConsoleSession]:
    link = ConsoleSession("pgqueue test", work, seconds=0.02)
    link.start()
    yield link
    link.stop()


@contextmanager
def nobody_answers() -> Iterator[None]:
    entry = connections["default"].settings_dict
    port, entry["PORT"] = entry["PORT"], 1
    yield
    entry["PORT"] = port


def test_a_database_that_takes_no_writes_is_tried_ever_more_seldom(
    link: ConsoleSession, work: Beating, caplog: pytest.LogCaptureFixture
) -> None:
    """The server's message is logged once: the error that ended the last session is not why a new one fails."""
    until(lambda: work.beats)
    with read_only("default"):
        until(lambda: link.failures >= 3, what="it rests longer each time")
        assert caplog.text.count("The console's database takes no writes now") == 1
        assert "cannot execute UPDATE in a read-only transaction" in caplog.text
        with nobody_answers():
            until(lambda: "The console's database does not answer" in caplog.text, what="another cause is told")
        assert "answers again" not in caplog.text
    before = work.beats
    until(lambda: work.beats > before + 1, what="it beats again")
    assert caplog.text.count("The console's database answers again.") == 1
    assert link.failures == 0
