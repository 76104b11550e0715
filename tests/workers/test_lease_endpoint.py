"""An endpoint of the lease queue under the real supervisor has all features of endpoints."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import LeaseQueue, expiry
from pgqueue_admin.models import Endpoint, InFlightAtCrash, Process, crashing_messages
from pgqueue_admin.services import endpoint_change, endpoints
from tests.lease.tables import archived, waiting
from tests.waiting import until, within
from tests.workers.host import House, alive

MESSAGES, KILLS = 300, 4


@pytest.fixture
def house(console_database: str, queues: str, tmp_path: Path) -> Iterator[House]:
    house = House(console_database, queues, tmp_path / "var", apps="tests.workers.thumbs")
    yield house
    house.close()


@pytest.fixture
def queue(queues: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(queues)
    yield queue
    queue.close()


def wanted(processes: int = 1, **settings: Any) -> Endpoint:
    where = {"schema": "messages", "table": "message", "kind": "lease"}
    facts = {"desired_processes": processes, "concurrency": 2, "delayed_retries": 0, **where, **settings}
    return Endpoint.objects.create(name="Thumbs", **facts)


def running(house: House, count: int = 1, state: str = "running") -> list[Process]:
    return house.running(count, "Thumbs", state)


def held(queue: LeaseQueue, gate: Path, **more: Any) -> int:
    """A message in flight until the gate is opened."""
    message = queue.publish({"kind": "render", "hold": str(gate), **more})
    until(gate.with_suffix(".held").exists, what="in hand")
    return message


def results(look: Connection) -> dict[int, str]:
    return dict(archived(look, "message_id::int, result::text"))


def test_lease_endpoint_handles_and_reports_like_any_endpoint(
    house: House, queue: LeaseQueue, look: Connection
) -> None:
    wanted()
    house.supervise()
    (process,) = running(house)
    kinds = [{"kind": "render"}, {"kind": "render", "width": "wide"}, {"kind": "render", "fail": True}, ["?"]]
    ids = queue.publish_many([*kinds, {"kind": "render", "models": True}])
    until(lambda: not waiting(look))
    rejected = [ids[1], ids[3]]
    assert results(look) == {
        message: "failed" if message == ids[2] else "rejected" if message in rejected else "success" for message in ids
    }
    details = "select distinct handled_by, details::jsonb ->> 'pid' as pid from messages.message_archive"
    assert look.all(f"{details} where result = 'success'") == [("Thumbs", str(process.pid))]
    row = house.first("counted", endpoint="Thumbs", handled=2, failed=3, received=5, busy=0)
    assert (row.slots, row.retried, row.breakers) == (2, 0, [])
    assert row.critical_p95_ms is not None
    assert row.processing_p95_ms is not None
    assert row.handled_per_second


def test_settings_are_taken_while_it_runs(house: House, queue: LeaseQueue, look: Connection, tmp_path: Path) -> None:
    wanted(concurrency=1)
    house.supervise()
    (process,) = running(house)
    gates = [tmp_path / f"gate-{number}" for number in range(2)]
    held(queue, gates[0])
    queue.publish({"kind": "render", "hold": str(gates[1])})
    row = endpoints.save_settings("Thumbs", {"concurrency": 2, "archive_success": False}, "ana", "console")
    within(1, gates[1].with_suffix(".held").exists, "a second slot, though one is busy")
    house.first("reported", endpoint="Thumbs", settings_version=row.version, slots=2, busy=2)
    for gate in gates:
        gate.touch()
    until(lambda: not waiting(look))
    assert archived(look) == [], "successes leave no row now"
    endpoints.pause("Thumbs", "ana", "console")
    assert running(house, state="paused")[0].pid == process.pid
    waits = queue.publish({"kind": "render"})
    house.first("idle", endpoint="Thumbs", busy=0, state="paused", received=2)
    assert waiting(look) == [waits]
    endpoints.resume("Thumbs", "ana", "console")
    until(lambda: not waiting(look), what="resumed")
    assert running(house)[0].pid == process.pid


def test_settings_of_the_other_kind_are_refused(console_database: str) -> None:
    wanted()
    with pytest.raises(endpoint_change.FaultySettings, match="An endpoint of the kind lease has no peek_delay_ms"):
        endpoints.save_settings("Thumbs", {"peek_delay_ms": 5, "concurrency": 4}, "ana", "console")
    Endpoint.objects.create(name="Sales", table="Sales")
    with pytest.raises(endpoint_change.FaultySettings, match="An endpoint of the kind transport has no lock_seconds"):
        endpoints.save_settings("Sales", {"lock_seconds": 5}, "ana", "console")
    with pytest.raises(endpoint_change.FaultySettings, match="The last retry would wait for"):
        endpoints.save_settings(
            "Thumbs", {"delayed_retries": 1000, "delayed_retry_step_ms": 86_400_000}, "ana", "console"
        )


def test_two_processes_and_one_less(house: House, queue: LeaseQueue, look: Connection, tmp_path: Path) -> None:
    """L11: one process handles a message. Scaled down, a process finishes its message."""
    wanted(2, concurrency=1)
    house.supervise()
    running(house, 2)
    gates = [tmp_path / f"gate-{number}" for number in range(2)]
    ids = [held(queue, gate) for gate in gates]
    endpoints.scale("Thumbs", 1, "ana", "console")
    until(lambda: house.rows("Thumbs", state="draining"), what="one drains")
    for gate in gates:
        gate.touch()
    running(house, 1)
    assert results(look) == dict.fromkeys(ids, "success")
    assert house.rows("Thumbs", state="stopped")[0].exit_code == 0


@pytest.mark.chaos
@pytest.mark.parametrize(("on_lock_expired", "result"), [("archive", "lock_expired"), ("release", "success")])
def test_kill_9_in_the_middle_has_one_outcome(
    house: House, queue: LeaseQueue, look: Connection, tmp_path: Path, on_lock_expired: str, result: str
) -> None:
    """The supervisor's own expirer ends it while it starts the next process."""
    wanted(lock_seconds=2, on_lock_expired=on_lock_expired, delayed_retries=3, delayed_retry_step_ms=100)
    house.supervise(expirer=True)
    (victim,) = running(house)
    gate = tmp_path / "gate"
    message = held(queue, gate, grave=str(tmp_path / "grave"))
    os.kill(victim.pid, signal.SIGKILL)
    gate.touch()
    until(lambda: not waiting(look), what="it has ended")
    assert results(look) == {message: result}
    (death,) = until(lambda: list(InFlightAtCrash.objects.all()), what="remembered")
    assert (death.endpoint, death.message_id, death.message_type, death.exit_code) == (
        "Thumbs", str(message), "render", -9,
    )  # fmt: skip
    if result == "lock_expired":
        until((tmp_path / "grave").exists, what="the handler of the dead is told")
        assert (tmp_path / "grave").read_text() == "lock_expired, attempt 1"
    crashed = house.first("said why", endpoint="Thumbs", ended_at__isnull=False)
    assert crashed.last_error == f"ended by SIGKILL; in flight: render {message}"
    assert not alive(victim.pid)
    other = queue.publish({"kind": "render"})
    until(lambda: results(look).get(other) == "success", what="the next process goes on")


@pytest.mark.chaos
def test_a_message_that_ends_its_process_comes_to_an_end_itself(
    house: House, queue: LeaseQueue, look: Connection
) -> None:
    """Its row counts its retries: no operator has to move it out."""
    wanted(lock_seconds=1, on_lock_expired="release", delayed_retries=3, delayed_retry_step_ms=100, concurrency=1)
    house.supervise(expirer=True)
    message = queue.publish({"kind": "render", "die": True})
    until(lambda: results(look) == {message: "lock_expired"}, what="given up")
    assert archived(look, "attempts") == [(4,)]
    until(lambda: InFlightAtCrash.objects.count() == 4, what="remembered")
    assert crashing_messages.suspects() == []


@pytest.mark.chaos
def test_chaos_one_outcome_each(house: House, queue: LeaseQueue, look: Connection, queues: str) -> None:
    """Processes are killed again and again; the supervisor's expirer, beat and each worker expire locks at once."""
    wanted(2, lock_seconds=1, on_lock_expired="release", delayed_retries=50, delayed_retry_step_ms=0, concurrency=4)
    over, ids = threading.Event(), queue.publish_many({"kind": "render", "work": 0.02} for _ in range(MESSAGES))

    def beats() -> None:
        with postgresql().connect(queues) as session:
            while not over.wait(0.1):
                expiry.end_and_renotify(session, postgresql())

    beat = threading.Thread(target=beats)
    house.supervise(expirer=True)
    beat.start()
    try:
        for kill in range(KILLS):
            until(partial(_at_most, look, MESSAGES - kill * MESSAGES // KILLS - 1))
            for victim in house.rows("Thumbs", ended_at=None)[:1]:
                with suppress(ProcessLookupError):
                    os.kill(victim.pid, signal.SIGKILL)
        until(lambda: not waiting(look), 120, what="all have ended")
    finally:
        over.set()
        beat.join()
    assert sorted(archived(look, "message_id::int, result::text, second_ending_of")) == [
        (message, "success", None) for message in ids
    ]
    assert InFlightAtCrash.objects.exists()


def _at_most(look: Connection, left: int) -> bool:
    return len(waiting(look)) <= left


@pytest.mark.chaos
def test_stopped_while_it_works_it_is_killed_and_its_message_ends_once(
    house: House, queue: LeaseQueue, look: Connection, tmp_path: Path
) -> None:
    """After a real SIGSTOP the process neither works nor exits."""
    house.environment["PGQUEUE_LIVENESS_TIMEOUT_SECONDS"] = "6"
    wanted(lock_seconds=2)
    house.supervise(expirer=True)
    (victim,) = running(house)
    gate = tmp_path / "gate"
    message = held(queue, gate)
    os.kill(victim.pid, signal.SIGSTOP)
    until(lambda: results(look) == {message: "lock_expired"}, what="its lock is over, long before it is missed")
    gate.touch()
    crashed = house.first("told", endpoint="Thumbs", ended_at__isnull=False)
    assert "no sign of life for 6" in crashed.last_error
    other = queue.publish({"kind": "render"})
    until(lambda: results(look).get(other) == "success", what="the next process goes on")
    assert len(archived(look)) == 2


def test_lease_endpoint_drains_at_its_memory_limit(house: House, queue: LeaseQueue, look: Connection) -> None:
    wanted(memory_mb=200, concurrency=1)
    house.supervise()
    message = queue.publish({"kind": "render", "hoard": True})
    row = house.first("too large", endpoint="Thumbs", state="stopped")
    assert row.last_error.startswith("drained at ")
    assert results(look) == {message: "success"}


def test_endpoint_declared_with_another_kind_does_not_start(house: House) -> None:
    wanted(kind="transport")
    house.supervise()
    row = house.first("ended", endpoint="Thumbs", exit_code=1)
    said = "Its application declares it as an endpoint of the kind lease, and here it is of transport."
    assert row.last_line == f"Thumbs cannot start. {said}"


def test_without_its_tables_it_does_not_start(house: House, look: Connection) -> None:
    look.run("drop table messages.notify_round")
    wanted()
    house.supervise()
    assert "run manage.py engine_schema" in house.first("ended", endpoint="Thumbs", exit_code=1).last_line


def test_the_supervisor_passes_it_on_as_text(console_database: str) -> None:
    from pgqueue_admin.workers.processes import endpoint_settings

    row = wanted(delayed_retries=2, delayed_retry_step_ms=1500, renewed_for_seconds=90, lock_seconds=5)
    row.refresh_from_db()
    text = endpoint_settings.to_text(row)
    assert json.loads(text)["kind"] == "lease"
    settings = endpoint_settings.lease_settings_of(endpoint_settings.from_text(text))
    assert (settings.retry_after, settings.renewed_for, settings.lock_seconds) == ((1.5, 3.0), 90, 5)
