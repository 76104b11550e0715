"""One child of the supervisor applies the rules of the lease queue, notified or by polling; a kill repeats nothing."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgqueue_admin.config import celery
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.models import Process
from pgqueue_admin.services import lease_rules
from pgqueue_admin.services.lease_rules import RuleDraft
from pgqueue_admin.workers.processes.expirer_process import ExpirerProcess
from tests.transport.statements_log import StatementsLog
from tests.waiting import until
from tests.workers.host import House

pytestmark = pytest.mark.usefixtures("lease_schema")


@pytest.fixture
def queue(console_database: str) -> Iterator[LeaseQueue]:
    queue = LeaseQueue(console_database)
    yield queue
    queue.close()


@pytest.fixture
def look(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture
def rule(console_database: str) -> int:
    return lease_rules.create(RuleDraft("", ("failed",), 1, 1), "chief", "command")


@pytest.fixture
def child(console_database: str) -> Iterator[ExpirerProcess]:
    child = ExpirerProcess()
    yield child
    child.close()


def die(queue: LeaseQueue, count: int) -> list[int]:
    """Let messages die; return their archive ids."""
    queue.publish_many(range(count))
    ended = [queue.finish(lease, "failed") for lease in queue.claim(count)]
    return [each.archive_id for each in ended if each and each.archive_id]


def back(look: Connection) -> list[int]:
    return [row[0] for row in look.all("select retried_from from messages.message order by 1")]


def test_told_of_a_death_it_looks_when_that_one_is_due(
    rule: int, queue: LeaseQueue, look: Connection, child: ExpirerProcess
) -> None:
    """Without the NOTIFY it looks once a minute."""
    child.run_once()

    def rests() -> bool:
        child.run_once()
        return child._rules.rest > 50

    until(rests, what="it has nothing to do")
    began, died = time.monotonic(), die(queue, 3)

    def has_retried() -> bool:
        child.run_once()
        return back(look) == died

    until(has_retried, what="they are back")
    assert time.monotonic() - began < 50


def test_deaths_without_a_listener_are_found_at_the_start(rule: int, queue: LeaseQueue, look: Connection) -> None:
    died, child = die(queue, 3), ExpirerProcess()

    def has_retried() -> bool:
        child.run_once()
        return back(look) == died

    until(has_retried, what="by a look at the start")
    child.close()


def test_a_lost_notify_costs_a_minute(
    rule: int, queue: LeaseQueue, look: Connection, child: ExpirerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for _ in range(5):
        child.run_once()
        now[0] += 1
    died = die(queue, 3)
    missed: list[str] = []  # read here, so that the child never gets them, however late they come
    while missed.count("dead_message") < len(died):
        missed += [each.channel for each in child.listening[0].notifications(0.1)]
    look.run("update messages.message_archive set died_at = died_at - interval '10 seconds'")
    for _ in range(50):
        child.run_once()
        now[0] += 1
    assert back(look) == []
    for _ in range(15):
        child.run_once()
        now[0] += 1
    assert back(look) == died


def test_beat_follows_them_as_well(rule: int, queue: LeaseQueue, look: Connection) -> None:
    died = die(queue, 3)
    look.run("update messages.message_archive set died_at = died_at - interval '10 seconds'")
    assert tasks.follow_lease_rules() == 3
    assert back(look) == died
    entry = celery.app.conf.beat_schedule["follow lease rules"]
    assert (entry["task"], entry["schedule"]) == ("pgqueue_admin.housekeeping.tasks.follow_lease_rules", 60)


@pytest.mark.chaos
def test_killed_child_and_beat_retry_each_message_once(
    rule: int, queue: LeaseQueue, look: Connection, console_database: str, tmp_path: Path
) -> None:
    """``kill -9`` of the child, three times, while 2,000 are due and beat applies the rules too."""
    house = House(console_database, console_database, tmp_path / "var")
    house.environment["PGQUEUE_QUEUE_SCHEMAS"] = "public,messages"
    died = die(queue, 2_000)
    house.supervise(expirer=True)
    try:
        for killed in range(3):
            wanted = 300 * killed
            until(lambda: len(back(look)) > wanted, what="it works")  # noqa: B023
            child = until(lambda: Process.objects.filter(role="expirer", ended_at=None).first(), what="a child runs")
            os.kill(child.pid, signal.SIGKILL)
            lease_rules.apply(0.1)
        until(lambda: len(back(look)) == 2_000, what="all are back")
    finally:
        house.close()
    assert back(look) == sorted(died)
    assert look.value("select count(*) from messages.archive_event where verb = 'retried'") == 2_000
    assert look.value("select count(*) from messages.lease_rule_dead") == 0


def test_while_nothing_dies_it_asks_one_statement_a_minute(
    child: ExpirerProcess, look: Connection, server: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = StatementsLog(server, look, "acts", before="pgqueue-admin ")

    def asked() -> int:
        return log.count(r"select extract\(epoch from available_at")

    for _ in range(5):
        now[0] += 1
        child.run_once()
    before, others = asked(), log.count(r"(select|with|insert|update|delete)[^;]*lease_rule")
    for _ in range(120):
        now[0] += 1
        child.run_once()
    assert asked() - before == 2
    assert log.count(r"(select|with|insert|update|delete)[^;]*lease_rule") == others, "and nothing else of them"


def test_while_many_go_back_locks_are_ended_in_time(
    rule: int, queue: LeaseQueue, look: Connection, child: ExpirerProcess
) -> None:
    """As after an outage: twenty thousand died together and are due."""
    look.run(
        "insert into messages.message_archive (created_at, message, result, handled_by, message_id)"
        " select now() at time zone 'utc', to_jsonb(n), 'failed', 'thumbs', (1000000 + n)::text"
        " from generate_series(1, 20000) n"
    )
    look.run("update messages.message_archive set died_at = died_at - interval '10 seconds'")
    latest = 0.0
    ends_at = time.monotonic() + 4
    while time.monotonic() < ends_at:
        began = time.monotonic()
        child.run_once()
        latest = max(latest, time.monotonic() - began)
        time.sleep(child.rest)
    assert back(look), "they go back meanwhile"
    assert latest < 3, "for so long no lock is ended"
