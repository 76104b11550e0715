"""Processes killed at each boundary of the crash table and at random: effects happen once (outbox sheet 5)."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint
from tests.outbox.dying_process import AT, MARKED, PLACES, PLACES_ELSEWHERE, RELAYS
from tests.outbox.test_mariadb import PENDING as PENDING_OF_MYSQL
from tests.outbox.test_receive import charges
from tests.outbox.test_upkeep import PENDING
from tests.own_server import own_server
from tests.transport.recording_observer import rows
from tests.waiting import until

PROCESS = Path(__file__).with_name("dying_process.py")
MANY, KILLS = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500)), 12
RESTARTS = {5} if MANY <= 500 else {2, 5, 7, 9}  # numbers of the kills that hit the server too


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PROCESS), *arguments], env={"PYTHONPATH": str(PROCESS.parents[2])})


def sent(dsn: str) -> Counter[tuple[int, str | None]]:
    """Sent messages, counted by number and message id."""
    return Counter((int(row.body), h.parse(row.headers)[h.MESSAGE_ID]) for row in rows(dsn, "Sales"))


@pytest.fixture(params=["beside the queues", "elsewhere", "on MariaDB"])
def outbox_dsn(request: pytest.FixtureRequest, database: str, connect: Any) -> str:
    if request.param == "beside the queues":
        return database
    if request.param == "on MariaDB":
        return str(request.getfixturevalue("mariadb_shop"))
    return another_postgresql(request, connect)


@pytest.fixture(params=["elsewhere", "on MariaDB"])
def outbox_elsewhere(request: pytest.FixtureRequest, connect: Any) -> str:
    if request.param == "on MariaDB":
        return str(request.getfixturevalue("mariadb_shop"))
    return another_postgresql(request, connect)


def another_postgresql(request: pytest.FixtureRequest, connect: Any) -> str:
    elsewhere: str = request.getfixturevalue("engine_database")
    connect(elsewhere).run("create table charges (number integer)")
    return elsewhere


@pytest.mark.parametrize("where", [*PLACES, MARKED])
@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_killed_at_a_boundary(make: MakeEndpoint, database: str, outbox_dsn: str, concurrency: Any, where: str) -> None:
    """Beside the queues each message is sent once; elsewhere it may be sent again with the same id."""
    dsn = "" if outbox_dsn == database else outbox_dsn
    make(outbox=Outbox(dsn=dsn, concurrency=concurrency)).send_many("Billing", range(10), type=CHARGE)
    die_and_survive(database, outbox_dsn, concurrency, where)
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(10)), "each under one id"
    assert max(came.values()) == 1 or outbox_dsn != database


@pytest.mark.parametrize(("where", "again"), [*zip(PLACES_ELSEWHERE, (1, 0), strict=True)])
def test_killed_between_the_two_commits(
    make: MakeEndpoint, database: str, outbox_elsewhere: str, where: str, again: int
) -> None:
    """A message sent but not marked is sent again with the same id."""
    make(outbox=Outbox(dsn=outbox_elsewhere)).send_many("Billing", range(10), type=CHARGE)
    die_and_survive(database, outbox_elsewhere, "optimistic", where)
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(10)), "each under one id"
    assert sorted(came.values()) == [1] * (10 - again) + [2] * again


def die_and_survive(database: str, outbox_dsn: str, concurrency: str, where: str) -> None:
    """Ten messages have ten effects and ten marks, through two processes in turn."""
    dying = started(database, outbox_dsn, concurrency, "read_committed", where)
    assert dying.wait(60) == -signal.SIGKILL
    with started(database, outbox_dsn, concurrency, "read_committed", "-") as survivor:
        try:
            until(lambda: not rows(database, "Billing"))
        finally:
            survivor.kill()
    with there(outbox_dsn) as session:
        assert charges(session) == list(range(10))
    assert marks(outbox_dsn) == {True: 10}


# Number of repeated messages if the records are in another database; beside the queues there are none.
AGAIN = {
    "before the relay marks": AT - 1,
    f"{RELAYS}, {MARKED}": AT - 1,
    "when the relay has sent": AT,
    "when the relay has committed": 0,
}


@pytest.mark.parametrize("where", AGAIN)
def test_the_relay_is_killed_beside_a_live_worker(
    make: MakeEndpoint, connection: Connection, database: str, outbox_dsn: str, where: str
) -> None:
    """Twenty records wait. Every second message is delivered again meanwhile, so its worker sends too.

    Beside the queues each message is sent once. Elsewhere exactly those are repeated, with the same ids, that the
    relay had sent without committing their marks.
    """
    is_beside = outbox_dsn == database
    billing = make(outbox=Outbox(dsn="" if is_beside else outbox_dsn))
    with there(outbox_dsn) as session:
        session.run(PENDING_OF_MYSQL if is_mysql(outbox_dsn) else PENDING, ["Sales", 20])
    dying = started(database, outbox_dsn, "optimistic", "read_committed", where)
    for number in range(2, 21, 2):
        billing.send("Billing", number, type=CHARGE, headers={h.MESSAGE_ID: f"pending {number}"})
    worker = started(database, outbox_dsn, "optimistic", "read_committed", "-")
    assert dying.wait(60) == -signal.SIGKILL
    relay = started(database, outbox_dsn, "optimistic", "read_committed", RELAYS)
    try:
        until(lambda: marks(outbox_dsn) == {True: 20} and not rows(database, "Billing"))
    finally:
        for process in (worker, relay):
            process.kill()
            process.wait()
    came = sent(database)
    assert set(came) == {(number, f"sent {number}") for number in range(1, 21)}
    again = 0 if is_beside else AGAIN[where]
    assert sorted(came.values()) == [1] * (20 - again) + [2] * again
    with there(outbox_dsn) as session:
        assert charges(session) == [], "no handler ran again"


def is_mysql(dsn: str) -> bool:
    return dsn.startswith("mysql")


def there(dsn: str) -> Any:
    return dialect_for(dsn).connect(dsn, for_handlers=True)


def marks(outbox_dsn: str) -> Counter[bool]:
    """Numbers of dispatched and of undispatched records."""
    text = 'select "Dispatched" = true from "Billing_OutboxData"'
    with there(outbox_dsn) as session:
        found = session.all(text.replace('"', "`" if is_mysql(outbox_dsn) else '"'))
    return Counter(bool(dispatched) for (dispatched,) in found)


def is_down_to(dsn: str, left: int) -> bool:
    """Uses a new session, as the server may have been restarted since."""
    with there(dsn) as session:
        return int(session.value('select count(*) from "Billing"')) <= left


def deliver_again(connection: Connection, chance: random.Random, messages: int) -> int:
    """Repeat each message up to twice, its copies in a row. Return the number of deliveries."""
    copies = chance.choices((1, 2, 3), k=messages)
    connection.run(
        """insert into "Billing" (id, headers, body) select gen_random_uuid(), headers, body
        from "Billing", generate_series(2, (%s::int[])[convert_from(body, 'UTF8')::int + 1]) order by headers""",
        [copies],
    )
    return sum(copies)


def restart(server: PostgreSQL, kill: bool) -> None:
    """Restart the server after a fast shutdown, or after a crash that recovers only committed data."""
    if kill:
        os.kill(server.pid or 0, signal.SIGQUIT)
    server.stop()
    server.start()


@pytest.mark.chaos
@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
def test_chaos_effects_once(concurrency: Any, isolation: str) -> None:
    """Each message is delivered one to three times while three processes are killed again and again, sessions are cut
    and the server is killed.
    """
    chance = random.Random(34)
    with own_server({"fsync": "off"}) as server:
        dsn, deliveries = shop_of(server, Outbox(concurrency=concurrency), chance)
        processes = [started(dsn, dsn, concurrency, isolation, "-") for _ in range(3)]
        try:
            for kill in range(KILLS):
                left = deliveries - (kill + 1) * deliveries // (KILLS + 1)
                until(partial(is_down_to, dsn, left), seconds=max(120, MANY // 20))
                victim = chance.randrange(3)
                processes[victim].kill()
                processes[victim].wait()
                if kill in RESTARTS:
                    restart(server, kill=kill % 4 == 1)
                else:
                    cut_a_session(dsn)
                processes[victim] = started(dsn, dsn, concurrency, isolation, "-")
            until(partial(is_down_to, dsn, 0), seconds=240)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        with there(dsn) as session:
            assert charges(session) == list(range(MANY))
        came = sent(dsn)
        assert sorted(number for number, _ in came) == list(range(MANY))
        assert set(came.values()) == {1}
        assert rows(dsn, "error") == []


def shop_of(server: PostgreSQL, outbox: Outbox, chance: random.Random) -> tuple[str, int]:
    """The DSN of a database with messages for Billing, and the number of their deliveries."""
    with there(server.dsn()) as admin:
        admin.run("create database shop")
    dsn = server.dsn("shop")
    billing = Endpoint("Billing", dsn, settings=replace(SETTINGS, outbox=outbox))
    for endpoint in (billing, Endpoint("Sales", dsn, settings=SETTINGS)):
        endpoint.create_queues()
    billing.send_many("Billing", range(MANY), type=CHARGE)
    with there(dsn) as session:
        session.run("create table charges (number integer)")
        return dsn, deliver_again(session, chance, MANY)


def cut_a_session(dsn: str) -> None:
    with there(dsn) as session:
        session.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'pgqueue Billing%'"
            " and datname = current_database() order by random() limit 1"
        )
