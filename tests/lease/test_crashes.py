"""Workers killed or stopped in the middle: each message has one outcome, and none is lost (L4, L6, L7)."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.lease import Expired, LeaseQueue, expiry
from tests.lease import dying_worker
from tests.lease.tables import archived, waiting
from tests.lease.worker_process import RETRIES
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.own_server import own_server
from tests.relay import Relay
from tests.waiting import until

WORKER = Path(__file__).with_name("worker_process.py")
DYING = Path(__file__).with_name("dying_worker.py")
MESSAGES, KILLS, CUTS = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500)), 10, 4
PATIENCE = max(120, MESSAGES // 20)  # seconds
WORKERS = 3
KINDS = ("render", "mail")

Process = subprocess.Popen[str]


def started(dsn: str, name: str, does: str, lock: float, **options: Any) -> Process:
    command = [sys.executable, str(WORKER), dsn, name, does, str(lock)]
    return subprocess.Popen(command, text=True, env={"PYTHONPATH": str(WORKER.parents[2])}, **options)


@contextmanager
def holding(dsn: str, lock: float) -> Iterator[Process]:
    """A process that holds a message until a line is written to its input."""
    with started(dsn, "victim", "holds", lock, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().strip()
            yield process
        finally:
            process.kill()


def test_kill_9_of_a_worker(engine: Connection, queue: LeaseQueue, engine_database: str) -> None:
    """The message stays locked until its lock expires; then it is dead, once."""
    message = queue.publish({"n": 1})
    with holding(engine_database, 1.0) as process:
        process.kill()
        process.wait()
    assert waiting(engine) == [message]
    assert queue.claim() == []
    until(lambda: queue.expire() == Expired(1, 0))
    assert archived(engine, "message_id::int, result::text, attempts") == [(message, "lock_expired", 1)]
    assert waiting(engine) == []


def test_a_worker_that_stands_still_beyond_its_lock(
    engine: Connection, queue: LeaseQueue, engine_database: str
) -> None:
    """As on a suspended machine: it continues, finishes late, and changes nothing."""
    message = queue.publish({"n": 1})
    with holding(engine_database, 1.0) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        until(lambda: queue.expire() == Expired(1, 0))
        process.send_signal(signal.SIGCONT)
        other = queue.publish({"n": 2})
        print("done", file=process.stdin, flush=True)
        assert process.stdout
        assert process.stdout.readline().strip() == str(other)  # so the first message has ended
    assert archived(engine, "message_id::int, result::text") == [(message, "lock_expired")]


@pytest.mark.parametrize("where", dying_worker.PLACES)
def test_killed_at_a_boundary(engine: Connection, queue: LeaseQueue, engine_database: str, where: str) -> None:
    """Nothing is lost, nothing ends twice, and no attempt runs twice."""
    engine.run("create table public.handled (message integer, attempt integer)")
    ids = queue.publish_many({"n": n} for n in range(dying_worker.MESSAGES))
    command = [sys.executable, str(DYING), engine_database, where]
    assert subprocess.run(command, env={"PYTHONPATH": str(DYING.parents[2])}).returncode == -signal.SIGKILL
    assert waiting(engine), "it has died amid its work"
    survivor = dying_worker.worker(engine_database)
    survivor.start()
    try:
        until(lambda: not waiting(engine))
    finally:
        survivor.stop()
    assert sorted(archived(engine, "message_id::int, result::text, second_ending_of")) == [
        (message, "success", None) for message in ids
    ]
    handled = [tuple(row) for row in engine.all("select message, attempt from public.handled")]
    assert {message for message, _ in handled} == set(ids)
    assert len(handled) == len(set(handled))


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "cut off"])
def test_between_the_commit_of_an_ending_and_its_answer(
    engine: Connection, queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection], is_killed: bool
) -> None:
    """The worker never gets the answer. The message has ended once, whether or not a worker asks again."""
    message = queue.publish({"n": 1})
    with started(engine_database, "victim", "works", 60.0, stdout=subprocess.DEVNULL) as process:
        try:
            with nobody_stands_by(connect(engine_database)):
                who_inserts_waits(engine, "messages.message_archive")
                until(lambda: engine.one(WAITS), what="its commit is written down")
                if is_killed:
                    process.kill()
                    process.wait()
                end_who_waits(engine)
                until(lambda: engine.one(WAITS) is None)
            if not is_killed:
                other = queue.publish({"n": 2})
                until(lambda: len(archived(engine)) == 2, what="it goes on")
        finally:
            process.kill()
    found = archived(engine, "message_id::int, result::text, attempts, second_ending_of")
    assert found == [(each, "success", 1, None) for each in ([message] if is_killed else [message, other])]
    assert waiting(engine) == []


def at_most(engine: Connection, left: int) -> bool:
    return len(waiting(engine)) <= left


class World:
    """A server of its own, workers behind a relay, and housekeepers; ``chance`` chooses the faults."""

    def __init__(self, server: PostgreSQL, dsn: str, chance: random.Random):
        self.dsn, self._server, self._chance = dsn, server, chance
        self._relay, self._over = Relay(dsn), threading.Event()
        self._workers = [self._started(number) for number in range(WORKERS)]
        self._housekeepers = [threading.Thread(target=self._keeps) for _ in range(2)]
        for housekeeper in self._housekeepers:
            housekeeper.start()

    def end(self) -> None:
        self._over.set()
        for worker in self._workers:
            worker.kill()
            worker.wait()
        for housekeeper in self._housekeepers:
            housekeeper.join()
        self._relay.end()

    def kill(self) -> None:
        victim = self._chance.randrange(WORKERS)
        self._workers[victim].kill()
        self._workers[victim].wait()
        self._workers[victim] = self._started(victim)

    def cut(self) -> None:
        """Cut all sockets of all workers."""
        self._relay.replace()

    def restart(self) -> None:
        """Restart the server: sessions end, their statements roll back."""
        self._server.stop()
        self._server.start()

    def crash(self) -> None:
        """Crash the server: it recovers only committed data."""
        os.kill(self._server.pid or 0, signal.SIGQUIT)
        self.restart()

    def looks(self, look: Callable[[Connection], bool]) -> bool:
        """Uses a new session, as the server may have been restarted since."""
        with postgresql().connect(self.dsn, for_handlers=True) as session:
            return look(session)

    def _started(self, number: int) -> Process:
        return started(self._relay.dsn, f"worker {number}", "works", 1.0, stdout=subprocess.DEVNULL)

    def _keeps(self) -> None:
        while not self._over.wait(0.1):
            with suppress(DatabaseError), postgresql().connect(self.dsn) as session:
                expiry.end_and_renotify(session, postgresql())


def abandoned(queue: LeaseQueue, number: int, chance: random.Random) -> set[int]:
    """Messages locked by clients that died; their locks expire while the faults happen."""
    queue.publish_many({"n": n, "kind": KINDS[n % 2], "ends": "lock_expired"} for n in range(number))
    leases = queue.claim(number)
    for first in range(0, number, 10):
        queue.renew_many(leases[first : first + 10], chance.uniform(1, 10))
    return {lease.id for lease in leases}


@pytest.mark.chaos
def test_chaos_one_outcome_each() -> None:
    """Workers are killed, their sockets cut, the server restarts and crashes, two housekeepers and each worker expire.

    Each message of both kinds ends once with its own outcome; killed at its last attempt, it ends as expired.
    """
    chance = random.Random(33)
    events = ["kill"] * KILLS + ["cut"] * CUTS + ["restart", "crash"]
    chance.shuffle(events)
    with own_server({}) as server:
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database shop")
        dsn = server.dsn("shop")
        with postgresql().connect(dsn, for_handlers=True) as session:
            schema.install(session)
        queue = LeaseQueue(dsn)
        wanted = dict.fromkeys(abandoned(queue, MESSAGES // 10, chance), "lock_expired")
        ends = chance.choices(("success", "failed", "rejected"), (7, 1, 1), k=MESSAGES - len(wanted))
        messages = [{"n": n, "kind": chance.choice(KINDS), "ends": each} for n, each in enumerate(ends)]
        wanted |= dict(zip(queue.publish_many(messages), ends, strict=True))
        queue.close()
        world = World(server, dsn, chance)
        try:
            for number, event in enumerate(events, 1):
                left = MESSAGES - number * MESSAGES // (len(events) + 1)
                until(partial(world.looks, partial(at_most, left=left)), seconds=PATIENCE)
                getattr(world, event)()
            until(partial(world.looks, partial(at_most, left=0)), seconds=PATIENCE)
        finally:
            world.end()
        with postgresql().connect(dsn, for_handlers=True) as session:
            rows = archived(session, "message_id::int, result::text, attempts, second_ending_of")
    assert sorted(row[0] for row in rows) == sorted(wanted)
    assert {row[3] for row in rows} == {None}
    others = [row for row in rows if row[1] != wanted[row[0]]]
    assert [row for row in others if row[1:3] != ("lock_expired", RETRIES + 1)] == []
    assert {row[1] for row in rows} == {"success", "failed", "rejected", "lock_expired"}
