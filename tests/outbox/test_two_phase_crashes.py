"""Processes that are killed at each boundary of a two-phase commit: effects once in every database (O6)."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from tests.outbox.conftest import CHARGE, MakeEndpoint, Shops
from tests.outbox.dying_process import AT, PLACES_OF_TWO_PHASES
from tests.outbox.test_crashes import sent, started
from tests.outbox.test_two_phase import all_charges, another_server, prepared
from tests.transport.recording_observer import rows
from tests.waiting import until

IN_DOUBT = {  # how many of two databases stay prepared when the process dies there
    "before the first is prepared": [0, 0],
    "when the first is prepared": [1, 0],
    "when all are prepared": [1, 1],
    "when it is decided": [1, 1],
    "when the first is committed": [0, 1],
    "when all are committed": [0, 0],
}


@contextmanager
def survivor(database: str, concurrency: str, enlisted: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with started(database, database, concurrency, "serializable", "-", *enlisted) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("where", PLACES_OF_TWO_PHASES)
@pytest.mark.parametrize("concurrency", ["optimistic", pytest.param("pessimistic", marks=pytest.mark.chaos)])
def test_killed_at_a_boundary(
    make: MakeEndpoint,
    database: str,
    connection: Connection,
    connect: Any,
    shops: Shops,
    concurrency: Any,
    where: str,
) -> None:
    """The message whose rows are in doubt waits for them, by their key, until the recovery has ended them."""
    enlisted = [f"{name}={dsn}" for name, dsn in shops.items()]
    make(outbox=Outbox(databases=shops, concurrency=concurrency)).send_many("Billing", range(2 * AT), type=CHARGE)
    dying = started(database, database, concurrency, "serializable", where, *enlisted)
    assert dying.wait(60) == -signal.SIGKILL
    assert prepared(shops, connect) == IN_DOUBT[where]
    with survivor(database, concurrency, enlisted):
        until(lambda: not rows(database, "Billing"))
        until(lambda: prepared(shops, connect) == [0, 0])
    assert all_charges(shops, connection, connect) == [list(range(2 * AT))] * 3
    came = sent(database)
    assert sorted(number for number, _ in came) == list(range(2 * AT))
    assert set(came.values()) == {1}


@pytest.mark.parametrize("where", ["when all are prepared", "when the first is committed"])
def test_killed_and_the_server_restarted(
    make: MakeEndpoint, database: str, connection: Connection, connect: Any, where: str
) -> None:
    """An enlisted database's server is gone as well; what it had prepared is there again."""
    with another_server(fsync="off") as server:
        with connect(server.dsn()) as admin:
            for name in ("ledger", "stock"):
                admin.run(f"create database {name}")
        shops = {name: server.dsn(name) for name in ("ledger", "stock")}
        for dsn in shops.values():
            connect(dsn).run("create table charges (number integer primary key)")
        enlisted = [f"{name}={dsn}" for name, dsn in shops.items()]
        make(outbox=Outbox(databases=shops)).send_many("Billing", range(2 * AT), type=CHARGE)
        dying = started(database, database, "optimistic", "serializable", where, *enlisted)
        assert dying.wait(60) == -signal.SIGKILL
        server.stop()
        server.start()
        assert prepared(shops, connect) == IN_DOUBT[where]
        with survivor(database, "optimistic", enlisted):
            until(lambda: not rows(database, "Billing"))
            until(lambda: prepared(shops, connect) == [0, 0])
        assert all_charges(shops, connection, connect) == [list(range(2 * AT))] * 3
