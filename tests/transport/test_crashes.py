"""Processes and sessions that die: the message comes back and is handled (wire sheet 2.3)."""

import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from pgqueue_admin.dialects.errors import DatabaseDown, ReadOnly
from pgqueue_admin.transport import Endpoint, Handlers
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.transport.statements_log import StatementsLog
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
VICTIM = Path(__file__).with_name("holding_process.py")


def terminate(connection, endpoint="Sales"):
    """End every session of the endpoint, as a restart of the server does."""
    connection.all(
        "select pg_terminate_backend(pid, 60000) from pg_stat_activity"
        " where application_name like %s and datname = current_database()",
        [f"pgqueue {endpoint}%"],
    )


def working(connection, endpoint="Sales"):
    count = "select count(*) from pg_stat_activity where application_name = %s and state <> 'idle'"
    return connection.value(count, [f"pgqueue {endpoint}"])


def test_kill_9_of_a_receiving_process(endpoint, handlers, database):
    """The same id and seq come back, and the next receiver handles it."""
    endpoint.send("Sales", {"n": 1}, type=PLACE)
    (sent,) = rows(database, "Sales")
    python = {"env": {"PYTHONPATH": str(VICTIM.parents[2])}, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, VICTIM, database], **python) as process:
        try:
            assert process.stdout.readline().split() == [str(sent.id), str(sent.seq)]
            with endpoint.connect() as other, other.transaction():
                assert endpoint.queue.receive(other) is None
        finally:
            process.kill()
    with endpoint.connect() as other:
        until(lambda: endpoint.queue.peek(other) == 1, what="the server noticed")
    assert rows(database, "Sales") == [sent]
    assert rows(database, "error") == []
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append((context.message.row_id, context.message.seq)))
    endpoint.start()
    until(lambda: seen == [(str(sent.id), sent.seq)])


def test_a_session_that_ends_under_a_handler(endpoint, handlers, make_endpoint, connection, spy, database):
    """Nothing lost, nothing sent twice, no failure counted, no restart needed."""
    make_endpoint("Billing")
    attempts = []

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(order)
        context.send("Billing", order, type="Shop.Charge")
        if len(attempts) == 1:
            terminate(connection)

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: rows(database, "Billing"))
    assert attempts == [1, 1]
    assert len(rows(database, "Billing")) == 1
    assert spy.counts["failed"] == 0
    until(lambda: not rows(database, "Sales"))


def test_a_handler_that_hides_the_lost_session(endpoint, handlers, connection, spy, database):
    """Its last statement failed, but the handler ignored it: the message has not succeeded."""
    attempts = []

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(order)
        if len(attempts) == 1:
            terminate(connection)
            with pytest.raises(DatabaseDown):
                context.connection.run("select 1")

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: attempts == [1, 1])
    until(lambda: not rows(database, "Sales"))
    until(lambda: spy.counts["handled"] == 1)


def test_sends_after_a_lost_session_are_not_committed(endpoint, handlers, make_endpoint, connection, database):
    """A new session would commit them without the end of the message, which is then handled again."""
    make_endpoint("Billing")
    attempts = []

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(order)
        if len(attempts) == 1:
            terminate(connection)
            with suppress(DatabaseDown):
                context.connection.run("select 1")
        context.send("Billing", len(attempts), type="Shop.Charge")

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: not rows(database, "Sales"))
    assert [row.body for row in rows(database, "Billing")] == [b"2"]


@pytest.fixture
def idle_mover(endpoint):
    """An event, set once the mover of due messages pauses for good and leaves its session alone."""
    rest, resting = endpoint.alarm.rest, threading.Event()

    def for_long(seconds):
        resting.set()
        rest(600)

    endpoint.alarm.rest = for_long
    return resting


def test_idle_sessions_that_were_ended(endpoint, handlers, connection, server, idle_mover, caplog):
    """Ended by a restart or a firewall: they are replaced before use, without a failure."""
    seen = []
    asked = StatementsLog(server, connection, "Sales").asked
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    endpoint.apply(replace(QUICK, peek_delay=600))
    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    assert idle_mover.wait(60)
    until(lambda: seen == [1] and asked() == ["peek", "receive", "peek"])
    until(lambda: not endpoint.in_flight and not working(connection))
    caplog.clear()
    terminate(connection)
    endpoint.send("Sales", 2, type=PLACE)
    endpoint.apply(QUICK)
    until(lambda: seen == [1, 2])
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


def test_a_database_that_is_down_at_the_start(connection, database, make_endpoint, handlers, databases):
    """The endpoint waits and begins once the database is up."""
    make_endpoint().stop()
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    name = database.rpartition("/")[2]
    connection.close()
    databases._admin.run(f"alter database {name} allow_connections false")
    endpoint = make_endpoint_without_queues(database, handlers)
    try:
        endpoint.start()
        databases._admin.run(f"alter database {name} allow_connections true")
        endpoint.send("Sales", 1, type=PLACE)
        until(lambda: seen == [1])
    finally:
        endpoint.stop(0)


def make_endpoint_without_queues(dsn: str, handlers: Handlers) -> Endpoint:
    return Endpoint("Sales", dsn, settings=QUICK, handlers=handlers)


def test_a_locked_table_holds_nothing_but_itself(endpoint, handlers, database, connect):
    """Wire sheet 6: it waits for the exclusive lock, then everything continues."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    endpoint.send("Sales", 1, type=PLACE)
    locker, other = connect(database), connect(database)
    starting = threading.Thread(target=endpoint.start)  # the start may wait for the lock too
    with locker.transaction():
        locker.run('lock table "Sales" in access exclusive mode')
        starting.start()
        until(lambda: waiting(other))
        assert seen == []
    starting.join(60)
    until(lambda: seen == [1])


def waiting(connection):
    return connection.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock'")


def pids(connection):
    """Pids of all its sessions."""
    mine = (
        "select pid from pg_stat_activity where application_name like 'pgqueue Sales%' and datname = current_database()"
    )
    return {pid for (pid,) in connection.all(mine)}


@pytest.fixture
def writes(connection):
    """``writes("off")``: from then on the server refuses writes, in existing sessions too."""

    def writes(said):
        refuse = {"off": "set default_transaction_read_only = on", "on": "reset default_transaction_read_only"}
        connection.run("set default_transaction_read_only = off")  # a read-only server accepts this statement
        connection.run(f"alter system {refuse[said]}")
        connection.run("select pg_reload_conf()")

    yield writes
    writes("on")


def test_a_server_that_takes_no_more_writes_is_left(endpoint, handlers, connection, writes):
    """After a switch-over it keeps its sessions: new ones go where the address leads now, without a restart."""
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(order))
    endpoint.apply(replace(QUICK, concurrency=1))  # one slot: its session is replaced at its next receive
    endpoint.start()
    endpoint.send("Sales", 1, type=PLACE)
    until(lambda: seen == [1])
    before = pids(connection)
    writes("off")

    def only_the_slots_is_left():
        with suppress(ReadOnly):
            endpoint.send("Sales", 1, type=PLACE)
        return len(before & pids(connection)) == 1

    until(only_the_slots_is_left, what="it peeks, moves and sends in new sessions")
    with pytest.raises(ReadOnly):
        endpoint.send("Sales", 1, type=PLACE)
    writes("on")
    until(lambda: not endpoint.breakers.troubles())
    endpoint.send("Sales", 2, type=PLACE)
    until(lambda: 2 in seen)
