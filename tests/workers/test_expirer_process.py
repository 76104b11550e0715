"""Expired locks of the lease queue end within a second, by one process of all, with beat beside it (L6)."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.lease import LeaseQueue, expiry
from pgqueue_admin.models import Process
from pgqueue_admin.workers.processes import expirer_process
from pgqueue_admin.workers.processes.expirer_process import ExpirerProcess
from tests.lease.tables import archived, waiting
from tests.transport.statements_log import StatementsLog
from tests.waiting import NOISE, until
from tests.workers.host import House

LATE = """
select max(extract(epoch from archived_at - substring(details from '[0-9: .-]{23}')::timestamp))
from messages.message_archive where result = 'lock_expired'"""


@pytest.fixture
def house(console_database: str, tmp_path: Path) -> Iterator[House]:
    house = House(console_database, console_database, tmp_path / "var")
    yield house
    house.close()


@pytest.fixture
def queue(console_database: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(console_database)
    yield queue
    queue.close()


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def expiring(console_database: str) -> Iterator[ExpirerProcess]:
    expiring = ExpirerProcess()
    yield expiring
    expiring.close()


@pytest.mark.chaos
def test_within_a_second_by_the_supervisors_child_while_beat_runs_as_well(
    house: House, queue: LeaseQueue, look: Connection, console_database: str
) -> None:
    over = threading.Event()
    beats = threading.Thread(target=_as_beat_does, args=[console_database, over])
    house.supervise(expirer=True)
    until(lambda: Process.objects.filter(role="expirer", ended_at=None).exists(), what="it runs")
    try:
        first = queue.publish_many(range(20))
        queue.claim(20, lock_for=1.5)
        until(lambda: queue.outlook().is_empty, what="by the child alone")
        late = look.value(LATE)
        beats.start()
        second = queue.publish_many(range(50))
        for lock_for in (0.5, 1.0, 1.5, 2.0, 2.5):
            queue.claim(10, lock_for=lock_for)
        until(lambda: queue.outlook().is_empty, what="by both")
    finally:
        over.set()
        if beats.ident:
            beats.join()
    assert late < 1 * NOISE
    found = archived(look, "message_id::int, result::text")
    assert sorted(found) == [(message, "lock_expired") for message in [*first, *second]]


def _as_beat_does(dsn: str, over: threading.Event) -> None:
    with postgresql().connect(dsn) as session:
        while not over.is_set():
            expiry.end_and_renotify(session, postgresql())
            over.wait(0.05)


def test_single_expirer_of_all_hosts_works_until_another_takes_over(
    expiring: ExpirerProcess, queue: LeaseQueue, look: Connection
) -> None:
    expiring.run_once()
    another = ExpirerProcess()
    queue.publish(1)
    queue.claim(lock_for=0.01)
    another.run_once()
    assert waiting(look), "the first has the lock"
    assert another.listening == []
    expiring.close()

    def has_taken_over() -> bool:
        another.run_once()
        return not waiting(look)

    until(has_taken_over, what="the next one goes on")
    another.close()


def test_an_empty_queue_is_asked_once_a_minute(
    expiring: ExpirerProcess,
    queue: LeaseQueue,
    look: Connection,
    server: PostgreSQL,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = StatementsLog(server, look, expiry.BY.removeprefix("pgqueue "))
    expiring.run_once()
    began = log.count(r"\S"), log.count("select")
    for _ in range(60):
        now[0] += 1
        expiring.run_once()
    assert (log.count(r"\S"), log.count("select")) == (began[0] + 1, began[1] + 1)
    queue.publish(1)

    def has_looked() -> bool:
        now[0] += 0.1
        expiring.run_once()
        return log.count("select") == began[1] + 2

    until(has_looked, what="told, it looks again")
    for _ in range(5):
        now[0] += 1
        expiring.run_once()
    assert log.count(r"\S") == began[0] + 2 + 5, "each second while something lies there"


def test_where_there_is_no_lease_queue_it_rests(
    expiring: ExpirerProcess, look: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    look.run("drop table messages.notify_round")
    expiring.run_once()
    assert expiring._trouble == ""
    assert expiring.rest == expirer_process.BEAT
    (row,) = Process.objects.filter(role="expirer")
    assert (row.state, row.last_error) == ("running", "")
