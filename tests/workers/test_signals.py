"""What an application makes of signals, and of threads, is not what ends its process."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.deadly.handlers import TYPE
from tests.workers.host import House, alive, want

pytestmark = pytest.mark.chaos


@pytest.fixture
def hearing(console_database: str, queues: str, sales: Endpoint, tmp_path: Path) -> Iterator[House]:
    house = House(console_database, queues, tmp_path / "var", apps="tests.workers.hearing")
    yield house
    house.close()


def test_a_signal_that_an_application_handles_does_not_end_its_process(
    hearing: House, sales: Endpoint, look: Connection
) -> None:
    want(1)
    hearing.supervise()
    (child,) = hearing.running(1)
    for _ in range(2):
        os.kill(child.pid, signal.SIGUSR1)
        until((hearing.var / "heard").exists, what="it is heard")
        (hearing.var / "heard").unlink()
    sales.send("Sales", {}, type="Shop.Do")
    assert until(lambda: look.value("select pid from handled"), what="handled") == child.pid
    hearing.end()
    assert [row.state for row in hearing.rows()] == ["stopped"]


def test_one_that_is_done_and_cannot_leave_is_replaced(deadly: House, sales: Endpoint, look: Connection) -> None:
    """A thread of a handler's that is no daemon keeps an ended process for ever."""
    deadly.environment["PGQUEUE_LIVENESS_TIMEOUT_SECONDS"] = "4"
    want(1)
    deadly.supervise()
    (child,) = deadly.running(1)
    sales.send("Sales", {"way": "linger"}, type=TYPE)
    told = deadly.first("it is told", pid=child.pid, ended_at__isnull=False)
    assert "it showed no sign of life for 4" in told.last_error
    assert not alive(child.pid)
    assert deadly.running(1)[0].pid != child.pid
