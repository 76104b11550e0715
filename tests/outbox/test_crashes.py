"""Processes that are killed at each boundary of the crash table, and at random: effects once (outbox sheet 5)."""

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import CHARGE, MakeEndpoint
from tests.outbox.dying_process import PLACES
from tests.outbox.test_receive import ANOTHER_ID, charges
from tests.transport.recording_observer import rows
from tests.waiting import until

PROCESS = Path(__file__).with_name("dying_process.py")
MANY, KILLS = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500)), 12


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PROCESS), *arguments], env={"PYTHONPATH": str(PROCESS.parents[2])})


def sent(dsn: str) -> Counter[tuple[int, str | None]]:
    """What came, by number and message id."""
    return Counter((int(row.body), h.parse(row.headers)[h.MESSAGE_ID]) for row in rows(dsn, "Sales"))


@pytest.fixture(params=["beside the queues", "elsewhere", "on MariaDB"])
def outbox_dsn(request: pytest.FixtureRequest, database: str, connect: Any) -> str:
    if request.param == "beside the queues":
        return database
    if request.param == "on MariaDB":
        return str(request.getfixturevalue("mariadb_shop"))
    elsewhere: str = request.getfixturevalue("engine_database")
    connect(elsewhere).run("create table charges (number integer)")
    return elsewhere


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_killed_at_a_boundary(make: MakeEndpoint, database: str, outbox_dsn: str, concurrency: Any, where: str) -> None:
    """Beside the queues each outgoing message is sent once; elsewhere perhaps again, with the same id."""
    dsn = "" if outbox_dsn == database else outbox_dsn
    make(outbox=Outbox(dsn=dsn, concurrency=concurrency)).send_many("Billing", range(10), type=CHARGE)
    dying = started(database, outbox_dsn, concurrency, "read_committed", where)
    assert dying.wait(60) == -signal.SIGKILL
    with started(database, outbox_dsn, concurrency, "read_committed", "-") as survivor:
        try:
            until(lambda: not rows(database, "Billing"))
        finally:
            survivor.kill()
    with dialect_for(outbox_dsn).connect(outbox_dsn, for_handlers=True) as there:
        assert charges(there) == list(range(10))
        assert len(dispatched(there, "`" if outbox_dsn.startswith("mysql") else '"')) == 10
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(10)), "each under one id"
    assert max(came.values()) == 1 or outbox_dsn != database


def dispatched(session: Any, quote: str) -> list[str]:
    """The ids of its records."""
    text = 'select "MessageId" from "Billing_OutboxData" where "Dispatched" = true'
    rows = session.all(text.replace('"', quote))
    return [name for (name,) in rows]


def is_down_to(dsn: str, left: int) -> bool:
    return len(rows(dsn, "Billing")) <= left


@pytest.mark.chaos
@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read", "serializable"])
def test_chaos_effects_once(
    make: MakeEndpoint, database: str, connection: Connection, concurrency: Any, isolation: str
) -> None:
    """Each message comes two times; three processes are killed again and again, and sessions are cut."""
    chance = random.Random(34)
    make(outbox=Outbox(concurrency=concurrency)).send_many("Billing", range(MANY // 2), type=CHARGE)
    connection.run(ANOTHER_ID)
    processes = [started(database, database, concurrency, isolation, "-") for _ in range(3)]
    try:
        for kill in range(KILLS):
            until(partial(is_down_to, database, MANY - (kill + 1) * MANY // (KILLS + 1)), seconds=max(120, MANY // 20))
            victim = chance.randrange(3)
            processes[victim].kill()
            processes[victim].wait()
            connection.run(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pgqueue Billing'"
                " and datname = current_database() order by random() limit 1"
            )
            processes[victim] = started(database, database, concurrency, isolation, "-")
        until(lambda: is_down_to(database, 0), seconds=240)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert charges(connection) == list(range(MANY // 2))
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(MANY // 2))
    assert set(came.values()) == {1}
    assert rows(database, "error") == []
