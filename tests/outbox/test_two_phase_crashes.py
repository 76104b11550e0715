"""Processes killed at each boundary of a two-phase commit: effects happen once in every database (O6)."""

import os
import random
import signal
import subprocess
from functools import partial
from typing import Any, NamedTuple

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from tests.mariadb import MariaDB
from tests.outbox.conftest import CHARGE, MakeEndpoint, Shops
from tests.outbox.dying_process import AT, PLACES_OF_TWO_PHASES
from tests.outbox.test_crashes import deliver_again, is_down_to, sent, started
from tests.outbox.test_two_phase import all_charges, prepared
from tests.own_server import own_server
from tests.transport.recording_observer import rows
from tests.waiting import until

MANY, KILLS = int(os.environ.get("PGQUEUE_TEST_CHAOS_MESSAGES", 500)), 8
IN_DOUBT = {  # transactions that stay prepared in each of two databases if the process dies there
    "before the first is prepared": [0, 0],
    "when the first is prepared": [1, 0],
    "when all are prepared": [1, 1],
    "when it is decided": [1, 1],
    "when the first is committed": [0, 1],
    "when all are committed": [0, 0],
}


class World(NamedTuple):
    """The outbox's DSN, those of the enlisted databases, and a server of theirs that tests may kill."""

    outbox: str
    shops: Shops
    server: MariaDB | None = None

    @property
    def enlisted(self) -> list[str]:
        return [f"{name}={dsn}" for name, dsn in self.shops.items()]


@pytest.fixture(params=["postgresql", "stock on mariadb", "outbox on mariadb"])
def world(request: pytest.FixtureRequest, database: str, shops: Shops) -> World:
    if request.param == "stock on mariadb":
        stock = request.getfixturevalue("mariadb_stock")
        return World(database, {"ledger": shops["ledger"], "stock": stock}, request.getfixturevalue("mariadb"))
    if request.param == "outbox on mariadb":
        return World(request.getfixturevalue("mariadb_shop"), shops, request.getfixturevalue("mariadb"))
    return World(database, shops)


def process(database: str, world: World, concurrency: str, where: str) -> subprocess.Popen[bytes]:
    return started(database, world.outbox, concurrency, "serializable", where, *world.enlisted)


def end_by_a_survivor(database: str, world: World, concurrency: str) -> None:
    with process(database, world, concurrency, "-") as survivor:
        try:
            until(lambda: not rows(database, "Billing"))
            until(lambda: prepared(world.shops) == [0, 0])
        finally:
            survivor.kill()


@pytest.mark.parametrize("where", PLACES_OF_TWO_PHASES)
@pytest.mark.parametrize("concurrency", ["optimistic", pytest.param("pessimistic", marks=pytest.mark.chaos)])
def test_killed_at_a_boundary(make: MakeEndpoint, database: str, world: World, concurrency: Any, where: str) -> None:
    """The message waits for its rows in doubt, by their key, until recovery has ended them."""
    is_beside = world.outbox == database
    outbox = Outbox(dsn="" if is_beside else world.outbox, databases=world.shops, concurrency=concurrency)
    make(outbox=outbox).send_many("Billing", range(2 * AT), type=CHARGE)
    assert process(database, world, concurrency, where).wait(60) == -signal.SIGKILL
    assert prepared(world.shops) == IN_DOUBT[where]
    end_by_a_survivor(database, world, concurrency)
    assert all_charges(world.outbox, *world.shops.values()) == [list(range(2 * AT))] * 3
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(2 * AT)), "each under one id"
    assert max(came.values()) == 1 or not is_beside


@pytest.mark.parametrize("where", ["when all are prepared", "when the first is committed"])
def test_killed_and_the_server_restarted(make: MakeEndpoint, database: str, connect: Any, where: str) -> None:
    """The enlisted databases' server is restarted too; its prepared transactions survive."""
    with own_server({"fsync": "off"}) as server:
        world = World(database, {name: server.dsn(name) for name in ("ledger", "stock")})
        for name, dsn in world.shops.items():
            connect(server.dsn()).run(f"create database {name}")
            connect(dsn).run("create table charges (number integer primary key)")
        make(outbox=Outbox(databases=world.shops)).send_many("Billing", range(2 * AT), type=CHARGE)
        assert process(database, world, "optimistic", where).wait(60) == -signal.SIGKILL
        server.stop()
        server.start()
        assert_a_survivor_ends_it(database, world, where)


def test_killed_and_mariadb_killed_as_well(make: MakeEndpoint, database: str, shops: Shops, mariadb: MariaDB) -> None:
    """kill -9 of the server; its prepared transactions survive."""
    where = "when the first is committed"
    with mariadb.database() as name:
        mariadb.run("create table charges (number integer primary key)", name)
        world = World(database, {"ledger": shops["ledger"], "stock": mariadb.dsn(name)})
        make(outbox=Outbox(databases=world.shops)).send_many("Billing", range(2 * AT), type=CHARGE)
        assert process(database, world, "optimistic", where).wait(60) == -signal.SIGKILL
        mariadb.kill()
        mariadb.start()
        assert_a_survivor_ends_it(database, world, where)


def assert_a_survivor_ends_it(database: str, world: World, where: str) -> None:
    assert prepared(world.shops) == IN_DOUBT[where]
    end_by_a_survivor(database, world, "optimistic")
    assert all_charges(database, *world.shops.values()) == [list(range(2 * AT))] * 3


@pytest.mark.chaos
@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_chaos_effects_once_in_each_database(
    make: MakeEndpoint, database: str, connection: Connection, world: World, concurrency: Any
) -> None:
    """Each message is delivered one to three times while three processes are killed again and again, some in recovery.
    MariaDB, if there is one, is killed too.
    """
    chance = random.Random(34)
    dsn = "" if world.outbox == database else world.outbox
    outbox = Outbox(dsn=dsn, databases=world.shops, concurrency=concurrency)
    make(outbox=outbox).send_many("Billing", range(MANY), type=CHARGE)
    deliveries, patience = deliver_again(connection, chance, MANY), max(240, MANY // 20)
    processes = [process(database, world, concurrency, "-") for _ in range(3)]
    try:
        for kill in range(KILLS):
            left = deliveries - (kill + 1) * deliveries // (KILLS + 1)
            until(partial(is_down_to, database, left), seconds=patience)
            victim = chance.randrange(3)
            processes[victim].kill()
            processes[victim].wait()
            if world.server and kill == KILLS // 2:
                world.server.kill()
                world.server.start()
            processes[victim] = process(database, world, concurrency, "-")
        until(lambda: is_down_to(database, 0), seconds=patience)
        until(lambda: prepared(world.shops) == [0, 0], seconds=120)
    finally:
        for each in processes:
            each.kill()
            each.wait()
    assert all_charges(world.outbox, *world.shops.values()) == [list(range(MANY))] * 3
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(MANY)), "each under one id"
    if world.outbox == database:
        assert set(came.values()) == {1}
    else:  # sends cut off before the commit of their mark are repeated: two in flight per process
        assert sum(came.values()) <= MANY + 2 * (KILLS + 3)
    assert rows(database, "error") == []
