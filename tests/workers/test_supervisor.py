"""C1 on real processes: desired state, crashes, drains, and nothing left behind."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import InFlightAtCrash, Process, processes
from pgqueue_admin.services import endpoints
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.workers.supervisor.supervisor_store import SCAN_SECONDS
from tests.waiting import until, within
from tests.workers.host import House, alive, want
from tests.workers.shop.handlers import TYPE

pytestmark = pytest.mark.chaos

CLOCKS = 0.2  # seconds two readings of the database's clock may differ by, each as old as its answer took


def handled(look: Connection) -> list[str]:
    return [row.message_id for row in look.all("select message_id from handled order by at")]


def test_supervisor_starts_scales_and_stops_processes_as_wanted(house: House) -> None:
    want(2)
    house.supervise()
    first = house.running(2)
    endpoints.scale("Sales", 3, "ana", "console")
    within(2, lambda: len(house.rows(ended_at=None)) == 3, "a third one was started")
    began = time.monotonic()  # it has just read the desired state: only a notification reaches it before the next scan
    endpoints.scale("Sales", 4, "ana", "console")
    within(2, lambda: len(house.rows(ended_at=None)) == 4, "a fourth one was started")
    assert time.monotonic() - began < SCAN_SECONDS - 1
    assert {row.pid for row in first} < {row.pid for row in house.running(4)}
    endpoints.scale("Sales", 1, "ana", "console")
    within(2, lambda: len(house.rows(state__in=("starting", "running"))) == 1, "three were told to end")
    (kept,) = house.running(1)
    assert kept.pid == first[0].pid, "the oldest stays"
    endpoints.stop("Sales", "ana", "console")
    house.running(0)
    assert {row.state for row in house.rows()} == {"stopped"}
    assert {row.exit_code for row in house.rows()} == {0}


def test_killed_child_is_replaced_and_its_message_received_again(
    house: House, sales: Endpoint, look: Connection, tmp_path: Path
) -> None:
    want(1)
    house.supervise()
    (child,) = house.running(1)
    gate = tmp_path / "gate"
    message_id = sales.send("Sales", {"hold": str(gate)}, type=TYPE)
    before = look.one('select id, seq from "Sales"')
    until(gate.with_suffix(".held").exists, what="in hand")
    os.kill(child.pid, signal.SIGKILL)
    gate.touch()
    until(lambda: handled(look) == [message_id], what="received again")
    after = look.one("select row_id, seq, pid from handled")
    assert before is not None
    assert after is not None
    assert (after.row_id, after.seq) == (before.id, before.seq)
    assert after.pid != child.pid
    (dead,) = until(lambda: house.rows(pid=child.pid, state="crashed"), what="its death is written down")
    assert dead.exit_code == -signal.SIGKILL
    assert dead.last_error.startswith(f"ended by SIGKILL; in flight: {TYPE} {message_id}")


def test_process_ended_by_a_real_time_signal_ends_no_other(house: House) -> None:
    """Python has no names for most of them."""
    want(2)
    house.supervise()
    first, second = house.running(2)
    os.kill(first.pid, signal.SIGRTMIN + 2)
    (dead,) = until(lambda: house.rows(pid=first.pid, ended_at__isnull=False), what="its end is written down")
    assert dead.last_error.startswith(f"ended by signal {signal.SIGRTMIN + 2}")
    assert second.pid in {row.pid for row in house.running(2)}


def test_files_of_a_dead_process_that_cannot_be_removed_end_no_other(house: House) -> None:
    """As on a read-only disk: its file is a folder that is not empty."""
    want(2)
    house.supervise()
    first, second = house.running(2)
    for left in ("hand", "pulse"):
        path = house.var / "run" / f"{first.pid}-{first.start_ticks}.{left}"
        path.rename(path.with_suffix(".away"))
        (path / "kept").mkdir(parents=True)
    os.kill(first.pid, signal.SIGKILL)
    assert until(lambda: house.rows(pid=first.pid, exit_code=-signal.SIGKILL), what="its end is written down")
    assert second.pid in {row.pid for row in house.running(2)}


def test_a_killed_supervisor_leaves_no_process_and_messages_return(
    house: House, sales: Endpoint, look: Connection, tmp_path: Path
) -> None:
    want(2)
    supervisor = house.supervise()
    pids = [row.pid for row in house.running(2)]
    gate = tmp_path / "gate"
    sales.send("Sales", {"hold": str(gate)}, type=TYPE)
    until(gate.with_suffix(".held").exists, what="in hand")
    supervisor.kill()
    within(1, lambda: not any(alive(pid) for pid in pids), "no process of its group")
    until(lambda: sales.queue.peek(look) == 1, what="to be received again")

    house.supervise()  # a new one takes over at once and closes the rows of the dead one
    until(lambda: len(house.rows(state="running")) == 2 and not house.rows(state="running", pid__in=pids), what="anew")
    assert {row.state for row in house.rows(pid__in=pids)} == {"lost"}


def test_crashes_slow_down_and_say_why(house: House) -> None:
    want(1, "Broken")
    house.supervise()
    until(lambda: len(house.rows("Broken", ended_at__isnull=False)) >= 3, what="a third crash")
    first, second, third = house.rows("Broken")[:3]
    waited = [
        (second.started_at - first.ended_at).total_seconds(),  # type: ignore[operator]
        (third.started_at - second.ended_at).total_seconds(),  # type: ignore[operator]
    ]
    assert all(took >= wait - CLOCKS for took, wait in zip(waited, [0.5, 1.0], strict=True)), waited
    assert first.exit_code == 1
    assert (third.last_error, third.last_line) == (
        "ended with exit code 1",
        "RuntimeError: the shelf fell down",
    ), "what its log says is for those who may read it"

    def waiting() -> Process | None:
        return Process.objects.filter(state="back-off", next_start_at__isnull=False).first()

    until(waiting, what="the next start is shown")
    assert re.findall(r"Next start in (\S+) s", house.end())[:3] == ["0.5", "1.0", "2.0"]


def test_start_ends_a_back_off(house: House) -> None:
    want(1, "Broken")
    house.supervise()
    until(lambda: len(house.rows("Broken", ended_at__isnull=False)) >= 4, what="a wait of some seconds")
    waiting = until(lambda: house.rows("Broken", state="back-off"), what="in back-off")[0]
    started = time.monotonic()
    endpoints.start("Broken", "ana", "console")
    within(2, lambda: house.rows("Broken", id__gt=waiting.id), "started now", started)


def test_stop_ends_a_back_off_and_start_now_is_no_longer_offered(house: House) -> None:
    want(1, "Broken")
    house.supervise()
    until(lambda: len(house.rows("Broken", ended_at__isnull=False)) >= 4, what="a wait of some seconds")
    until(lambda: house.rows("Broken", state="back-off"), what="in back-off")
    endpoints.stop("Broken", "ana", "console")
    until(lambda: not house.rows("Broken", state="back-off"), what="nothing waits to be started")
    assert processes.of_endpoint("Broken").processes == []
    tried = len(house.rows("Broken"))
    endpoints.start("Broken", "ana", "console")
    until(lambda: len(house.rows("Broken")) > tried, what="a person's start does not wait for the back-off")


def test_a_drain_finishes_what_is_in_hand(house: House, sales: Endpoint, look: Connection, tmp_path: Path) -> None:
    want(1, drain_seconds=20, concurrency=1)
    house.supervise()
    (child,) = house.running(1)
    gate = tmp_path / "gate"
    message_id = sales.send("Sales", {"hold": str(gate)}, type=TYPE)
    until(gate.with_suffix(".held").exists, what="in hand")
    endpoints.stop("Sales", "ana", "console")
    (told,) = house.running(1, state="draining")
    until(lambda: drains_by_its_own_word(house, told), what="the child has heard")
    sales.send("Sales", {}, type=TYPE)
    gate.touch()
    house.running(0)
    assert handled(look) == [message_id], "finished, and nothing new begun"
    child.refresh_from_db()
    assert (child.state, child.exit_code) == ("stopped", 0)


def drains_by_its_own_word(house: House, told: Process) -> bool:
    """The supervisor records the drain before the child can know; later heartbeats are the child's."""
    (row,) = house.rows(id=told.id)
    return row.state == "draining" and row.heartbeat_at > told.heartbeat_at


def test_message_unfinished_after_the_drain_time_returns_to_its_queue(
    house: House, sales: Endpoint, look: Connection, tmp_path: Path
) -> None:
    want(1, drain_seconds=1)
    house.supervise()
    (child,) = house.running(1)
    sales.send("Sales", {"hold": str(tmp_path / "never")}, type=TYPE)
    until((tmp_path / "never.held").exists, what="in hand")
    endpoints.stop("Sales", "ana", "console")
    house.running(0)
    until(lambda: sales.queue.peek(look) == 1, what="to be received again")
    child.refresh_from_db()
    assert (child.exit_code, child.last_error) == (0, ""), "it left by itself when its time was over"
    assert not InFlightAtCrash.objects.exists(), "it was too slow for the time it had, and ended no process"


def test_unresponsive_process_is_killed_after_its_drain_time(house: House) -> None:
    want(1, drain_seconds=0)
    house.supervise()
    (child,) = house.running(1)
    os.kill(child.pid, signal.SIGSTOP)
    endpoints.stop("Sales", "ana", "console")
    house.running(0)
    child.refresh_from_db()
    assert (child.state, child.exit_code) == ("stopped", -signal.SIGKILL)


def test_term_drains_all_and_ends(house: House) -> None:
    want(2)
    supervisor = house.supervise()
    pids = [row.pid for row in house.running(2)]
    supervisor.terminate()
    assert supervisor.wait(60) == 0
    assert not any(alive(pid) for pid in pids)
    assert {row.state for row in house.rows()} == {"stopped"}
    assert Process.objects.get(role="supervisor").state == "stopped"


def test_a_second_one_on_a_host_is_refused_politely(house: House) -> None:
    want(1)
    first = house.supervise()
    (child,) = house.running(1)
    second = house.manage("supervise")
    said, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f"Nothing was started: pgqueue supervisor house-1 pid {first.pid} keeps the processes of this host." in said
    assert "Traceback" not in said
    assert first.poll() is None
    assert alive(child.pid)


@pytest.mark.parametrize("hosts", [("house-1", "house-2")])
def test_two_hosts_share_what_is_wanted_in_all(
    house: House, console_database: str, queues: str, tmp_path: Path, hosts: tuple[str, str]
) -> None:
    want(3)
    other = House(console_database, queues, tmp_path / "other", hosts[1])
    try:
        house.supervise()
        house.running(3)
        other.supervise()
        other.running(1)
        house.running(2)
        assert Process.objects.filter(role="endpoint", ended_at=None).count() == 3, "no one twice"
        other.close()  # kill -9: it records no end
        house.running(3)
        lost: Any = processes.supervisors().get(host=hosts[1])
        assert lost.heartbeat_lost, "not heard from since"
        assert lost.ended_at is None
    finally:
        other.close()
