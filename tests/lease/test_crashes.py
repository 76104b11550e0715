"""Workers that are killed or stopped in the middle: each message has one outcome, and none is lost (L4, L6, L7)."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.lease import Expired, LeaseQueue, upkeep
from tests.lease import dying_worker
from tests.lease.tables import archived, waiting
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.own_server import own_server
from tests.waiting import until

WORKER = Path(__file__).with_name("worker_process.py")
DYING = Path(__file__).with_name("dying_worker.py")
MESSAGES, KILLS = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500)), 12
PATIENCE = max(120, MESSAGES // 20)  # seconds
RESTARTS = 3

Process = subprocess.Popen[str]


def started(dsn: str, name: str, does: str, lock: float, **options: Any) -> Process:
    command = [sys.executable, str(WORKER), dsn, name, does, str(lock)]
    return subprocess.Popen(command, text=True, env={"PYTHONPATH": str(WORKER.parents[2])}, **options)


@contextmanager
def holding(dsn: str, lock: float) -> Iterator[Process]:
    """A process that has a message in hand, until a line is written to it."""
    with started(dsn, "victim", "holds", lock, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().strip()
            yield process
        finally:
            process.kill()


def test_kill_9_of_a_worker(engine: Connection, queue: LeaseQueue, engine_database: str) -> None:
    """Nobody has the message until its lock is over; then it is dead, once."""
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
    """As a machine that was suspended: it goes on, ends late, and changes nothing."""
    message = queue.publish({"n": 1})
    with holding(engine_database, 1.0) as process:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        until(lambda: queue.expire() == Expired(1, 0))
        process.send_signal(signal.SIGCONT)
        other = queue.publish({"n": 2})
        print("done", file=process.stdin, flush=True)
        assert process.stdout
        assert process.stdout.readline().strip() == str(other)  # so it has ended the first
    assert archived(engine, "message_id::int, result::text") == [(message, "lock_expired")]


@pytest.mark.parametrize("where", dying_worker.PLACES)
def test_killed_at_a_boundary(engine: Connection, queue: LeaseQueue, engine_database: str, where: str) -> None:
    """Nothing is lost, nothing ends twice, and no attempt is made twice."""
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
    """The worker never hears of it. It has ended so, once, whether or not somebody is left to ask again."""
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


@pytest.mark.chaos
def test_chaos_one_outcome_each(
    engine: Connection, queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    """One of three workers is killed again and again, sessions are cut, two housekeepers and each worker expire."""
    chance, over = random.Random(33), threading.Event()
    ids = queue.publish_many({"n": n} for n in range(MESSAGES))

    def keeps(session: Connection) -> None:
        while not over.is_set():
            upkeep.keep(session, postgresql())
            over.wait(0.1)

    housekeepers = [threading.Thread(target=keeps, args=[connect(engine_database)]) for _ in range(2)]
    workers = [started(engine_database, f"worker {n}", "works", 1.0, stdout=subprocess.DEVNULL) for n in range(3)]
    try:
        for housekeeper in housekeepers:
            housekeeper.start()
        for kill in range(KILLS):
            left = MESSAGES - (kill + 1) * MESSAGES // (KILLS + 1)
            until(partial(at_most, engine, left), seconds=PATIENCE)
            victim = chance.randrange(3)
            workers[victim].kill()
            workers[victim].wait()
            engine.run(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'pgqueue worker %%'"
                " and datname = current_database() order by random() limit 1"
            )
            workers[victim] = started(engine_database, f"worker {victim}", "works", 1.0, stdout=subprocess.DEVNULL)
        until(lambda: not waiting(engine), seconds=PATIENCE)
    finally:
        over.set()
        for housekeeper in housekeepers:
            housekeeper.join()
        for worker in workers:
            worker.kill()
            worker.wait()
    assert sorted(archived(engine, "message_id::int, result::text, second_ending_of")) == [
        (message, "success", None) for message in ids
    ]


@pytest.mark.chaos
def test_the_server_restarts_while_two_kinds_are_worked_on() -> None:
    """Stopped fast, and once killed: its commits are kept, and what it cut off comes to one outcome."""
    with own_server({}) as server:
        with postgresql().connect(server.dsn(), for_handlers=True) as admin:
            admin.run("create database shop")
        dsn = server.dsn("shop")
        with postgresql().connect(dsn, for_handlers=True) as session:
            schema.install(session)
            queue = LeaseQueue(dsn)
            ids = queue.publish_many({"n": n, "kind": ("render", "mail")[n % 2]} for n in range(MESSAGES))
            queue.close()
        workers = [started(dsn, f"worker {n}", "works", 1.0, stdout=subprocess.DEVNULL) for n in range(3)]
        try:
            for restart in range(RESTARTS):
                left = MESSAGES - (restart + 1) * MESSAGES // (RESTARTS + 1)
                until(partial(looks, dsn, partial(at_most, left=left)), seconds=PATIENCE)
                if restart == 1:
                    os.kill(server.pid or 0, signal.SIGQUIT)  # immediate: nothing is written down any more
                server.stop()
                server.start()
            until(partial(looks, dsn, partial(at_most, left=0)), seconds=PATIENCE)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        with postgresql().connect(dsn, for_handlers=True) as session:
            found = sorted(archived(session, "message_id::int, result::text, second_ending_of"))
    assert found == [(message, "success", None) for message in ids]


def looks(dsn: str, look: Callable[[Connection], bool]) -> bool:
    """In a session of its own: the server may have been restarted since."""
    with postgresql().connect(dsn, for_handlers=True) as session:
        return look(session)
