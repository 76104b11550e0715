"""The original's worker as its own process, with asyncpg on our tables: alone, beside ours, killed, in a burst.

Its own defects show here too (sheet A5); the promises of our side hold all the same.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.lease import LeaseHandlers, LeaseQueue, LeaseSettings, LeaseWorker
from tests.lease.tables import archived, waiting
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
ENDINGS = "message_id, result::text, handled_by, details"


class OriginalWorker:
    """A running process and its output so far."""

    def __init__(self, dsn: str, *lock: str):
        command = [sys.executable, "-m", "tests.lease.original_worker", dsn, *lock]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.said: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        until(lambda: "listens" in self.said, what="it listens")

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line.strip())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def original_worker(dsn: str, *lock: str) -> Iterator[OriginalWorker]:
    worker = OriginalWorker(dsn, *lock)
    try:
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.process.terminate()
            worker.process.wait(PATIENCE)
        worker.kill()


@pytest.fixture
def publisher(engine_database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(engine_database, autocommit=True) as session:
        yield session


def publish(session: psycopg.Connection[Any], document: str) -> int:
    """Publish as its script does, with psql's one statement."""
    query = "insert into messages.message (message) values (%s::jsonb) returning id"
    row = session.execute(query, [document]).fetchone()
    assert row
    return int(row[0])


@pytest.mark.parametrize(
    ("document", "result", "details"),
    [
        ('{"no": "list"}', "rejected", "invalid format"), ("[]", "rejected", "nothing in list"),
        ('["reject"]', "rejected", "explicit reject"), ('["fail"]', "failed", "explicit fail"),
        ('["raise"]', "failed", "unhandled exception: told to"), ('["timeout"]', "failed", "timed out"),
        ('["anything else"]', "success", "fake work"),
    ],
)  # fmt: skip
def test_each_instruction_ends_as_its_program_ends_it(
    engine_database: str, publisher: Any, engine: Connection, document: str, result: str, details: str
) -> None:
    """One archive row each, with the message's id, although the program writes none."""
    with original_worker(engine_database):
        number = publish(publisher, document)
        until(lambda: archived(engine), what="it has ended")
    assert archived(engine, ENDINGS) == [(str(number), result, "worker", details)]
    assert waiting(engine) == []


def test_messages_sent_before_its_start_are_done_after_a_renotify(
    engine_database: str, publisher: Any, engine: Connection, queue: LeaseQueue
) -> None:
    """It looks at nothing when it starts; waiting messages are notified again each minute."""
    numbers = [publish(publisher, '["test"]') for _ in range(3)]
    assert waiting(engine) == numbers
    with original_worker(engine_database):

        def are_done() -> bool:
            queue.renotify()
            return not waiting(engine)

        until(are_done, what="told again, it ends them")
    assert sorted(archived(engine, "message_id::int, result::text")) == [(each, "success") for each in numbers]


def test_only_one_of_two_workers_processes_a_message(engine_database: str, publisher: Any, engine: Connection) -> None:
    with original_worker(engine_database) as first, original_worker(engine_database) as second:
        numbers = []
        for _ in range(10):
            numbers.append(publish(publisher, '["test"]'))
            until(lambda: len(archived(engine)) == len(numbers), what="one has ended it")
        until(lambda: len(first.said) + len(second.said) == 22, what="both have said what they did")
        said = [*first.said, *second.said]
    assert sorted(archived(engine, "message_id::int, result::text")) == [(each, "success") for each in numbers]
    assert sorted(each for each in said if each.startswith("success")) == sorted(f"success {n}" for n in numbers)


def test_a_burst_that_it_cannot_take_is_ended_all_the_same(
    engine_database: str, publisher: Any, engine: Connection, queue: LeaseQueue
) -> None:
    """It takes one and drops the others with an InterfaceError (A5, 6): nothing is lost, and our side releases them."""
    with original_worker(engine_database) as worker:
        publisher.execute("insert into messages.message (message) select '[\"test\"]' from generate_series(1, 5)")
        until(lambda: len(worker.said) == 6, what="it has said something of each")
        assert "left InterfaceError" in worker.said

        def are_done() -> bool:
            queue.renotify(1)
            queue.expire()
            return not waiting(engine)

        until(are_done, what="told one by one, it ends them")
    ended = archived(engine, "message_id::int, result::text")
    assert sorted({message for message, _ in ended}) == [1, 2, 3, 4, 5]
    assert len(ended) == 5


def test_killed_with_one_in_hand_its_lock_expires(
    engine_database: str, publisher: Any, engine: Connection, queue: LeaseQueue
) -> None:
    with original_worker(engine_database) as worker:
        number = publish(publisher, '["timeout"]')
        until(lambda: engine.value("select lock_expires_at is not null from messages.message"), what="it has locked it")
        worker.kill()
    until(lambda: queue.expire().archived, what="its lock is over")
    assert archived(engine, "message_id::int, result::text") == [(number, "lock_expired")]


def test_beside_a_worker_of_ours_each_message_ends_once(
    engine_database: str, publisher: Any, engine: Connection
) -> None:
    """Both are notified of each message; the first to lock it has it. They come one at a time, as the original leaves
    those to its cron that arrive while its connection is busy.
    """
    handlers = LeaseHandlers()

    @handlers.handle()
    def handle(message: Any, lease: Any) -> str:
        return "by ours"

    ours = LeaseWorker("ours", engine_database, handlers, settings=LeaseSettings(concurrency=1))
    numbers = []
    with original_worker(engine_database, "60") as theirs:
        ours.start()
        try:
            for n in range(60):
                if n % 10 in (0, 5):
                    (ours.resume if n % 10 else ours.pause)()
                numbers.append(publish(publisher, '["test"]'))
                until(lambda: not waiting(engine), what="it has ended")
                until(lambda n=n: len(theirs.said) == n + 2, what="theirs has said whose it is")  # type: ignore[misc]
        finally:
            ours.stop()
    ended = archived(engine, "message_id::int, result::text, handled_by")
    assert [message for message, *_ in ended] == numbers
    assert {result for _, result, _ in ended} == {"success"}
    assert {name for *_, name in ended} == {"ours", "worker"}
    assert engine.value("select count(*) from messages.message_archive where second_ending_of is not null") == 0
