"""Messages that crash their process are recorded at each crash, whatever its kind."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pgqueue_admin.archive import held_row, move_to_archive
from pgqueue_admin.archive.move_to_archive import MoveReason
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import InFlightAtCrash, crashing_messages
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint
from tests.waiting import until
from tests.workers.deadly.handlers import TYPE
from tests.workers.host import House, alive, want

pytestmark = pytest.mark.chaos


@pytest.mark.parametrize(("way", "code", "how"), [("exit", 7, "ended with exit code 7"), ("segfault", -11, "SIGSEGV")])
def test_the_third_death_names_the_message(
    deadly: House, sales: Endpoint, look: Connection, way: str, code: int, how: str
) -> None:
    want(1, concurrency=1)
    message_id = sales.send("Sales", {"way": way}, type=TYPE)
    deadly.supervise()
    (found,) = until(lambda: crashing_messages.suspects("Sales"), what="a third death")
    assert (found.endpoint, found.address, found.count) == ("Sales", ("public", "Sales"), 3)
    assert (found.newest.message_id, found.newest.message_type) == (message_id, TYPE)
    assert {death.exit_code for death in found.deaths} == {code}
    assert how in found.newest.how
    assert found.alone == 3
    if way == "segfault":
        (crashed, *_) = deadly.rows(ended_at__isnull=False)
        assert re.search(r'Fatal Python error: Segmentation fault, in ".*ctypes', crashed.last_line)
        assert "in _segfault" in Path(crashed.log).read_text(), "the handler that did it"
    assert len({(death.pid, death.start_ticks) for death in found.deaths}) == 3
    assert {death.host for death in found.deaths} == {"house-1"}
    until(lambda: moved_out(look, found), what="out of the queue, in a moment in which nobody has it")
    sales.send("Sales", {"way": "live"}, type=TYPE)
    until(lambda: look.value('select count(*) from "Sales"') == 0, what="the endpoint goes on with the next one")
    assert look.value("select row_id from messages.message_archive") == found.row_id


@pytest.mark.parametrize(("way", "how"), [("segfault", "ended by SIGSEGV"), ("leave", "ended with exit code 0")])
def test_a_death_on_the_way_out_counts_too(deadly: House, sales: Endpoint, tmp_path: Path, way: str, how: str) -> None:
    """Stopped with the message in flight, the process crashes because of it instead of draining."""
    want(1, concurrency=1, drain_seconds=60)
    gate = tmp_path / "gate"
    message_id = sales.send("Sales", {"way": way, "gate": str(gate)}, type=TYPE)
    deadly.supervise()
    until(gate.with_suffix(".reached").exists, what="the message is in hand")
    endpoints.stop("Sales", "ana", "console")
    deadly.running(1, state="draining")
    gate.touch()
    (row,) = until(lambda: [each for each in deadly.rows() if each.ended_at], what="it has ended")
    assert row.state == "stopped"
    assert row.last_error.startswith(how)
    (death,) = until(lambda: list(InFlightAtCrash.objects.all()), what="its death is remembered")
    assert (death.message_id, death.how) == (message_id, how)


def moved_out(look: Connection, found: CrashingMessage) -> bool:
    why = MoveReason("ana", found.endpoint, found.newest.host, "it ends its process", found.count)
    with suppress(held_row.MessageInFlight):
        return move_to_archive.move_out(look, held_row.SeenRow(found.address, found.row_id, found.seq), why) > 0
    return False


def test_a_message_that_takes_too_much_memory_is_remembered_with_the_limit(deadly: House, sales: Endpoint) -> None:
    want(1, concurrency=1, memory_kill_mb=200)
    sales.send("Sales", {"way": "grow"}, type=TYPE)
    deadly.supervise()
    death = until(lambda: InFlightAtCrash.objects.first(), what="a death")
    assert death is not None
    assert death.exit_code == -9
    assert death.how.startswith("killed at ")
    assert death.how.endswith(", above its limit of 200\u00a0MB")
    crashed = deadly.first("shown", ended_at__isnull=False)
    assert crashed.last_error.startswith(death.how)


# Signal handlers and threads of an application must not count as the cause of a crash.
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


def test_finished_process_that_cannot_exit_is_replaced(deadly: House, sales: Endpoint, look: Connection) -> None:
    """A handler's non-daemon thread keeps a finished process alive for ever."""
    deadly.environment["PGQUEUE_LIVENESS_TIMEOUT_SECONDS"] = "4"
    want(1)
    deadly.supervise()
    (child,) = deadly.running(1)
    sales.send("Sales", {"way": "linger"}, type=TYPE)
    told = deadly.first("it is told", pid=child.pid, ended_at__isnull=False)
    assert "it showed no sign of life for 4" in told.last_error
    assert not alive(child.pid)
    assert deadly.running(1)[0].pid != child.pid
