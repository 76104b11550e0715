"""Answers that never come, wherever the engine waits: logged, given up, and nothing lost or duplicated.

A relay before the server is stopped: all connections stay, and the kernel still acknowledges packets.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown, NoAnswer
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.sessions.circuit_breaker import SECONDS_TO_TRIGGER, CircuitBreaker
from tests.relay import Relay
from tests.transport.conftest import QUICK, MakeEndpoint
from tests.transport.recording_observer import Spy, rows
from tests.waiting import held_up, locks_waited_for, until

LIMIT = 1.0
PLACE, PLACED = "Shop.PlaceOrder", "Shop.OrderPlaced"
ALONE = replace(QUICK, concurrency=1, notify=True)
GATE = 4711  # an advisory lock that holds up the server


@pytest.fixture
def relay(database: str) -> Iterator[Relay]:
    made = Relay(database)
    yield made
    made.end()


@pytest.fixture
def placed(handlers: Handlers) -> list[Any]:
    seen: list[Any] = []

    @handlers.handle(PLACE)
    def place(order: Any, context: Any) -> None:
        seen.append(order)
        context.send("Out", order, type=PLACED)

    return seen


@pytest.fixture
def web(make_endpoint: MakeEndpoint) -> Endpoint:
    """Sends to Sales, by a connection of its own."""
    return make_endpoint("Out")


@pytest.fixture
def sales(make_endpoint: MakeEndpoint, relay: Relay, placed: list[Any], web: Endpoint) -> Iterator[Endpoint]:
    """Receives through the relay; its sends go to Out."""
    endpoint = make_endpoint(dsn=relay.dsn, settings=ALONE, answer_seconds=LIMIT)
    yield endpoint
    relay.go_on()  # otherwise it could not be stopped in time


def trouble(endpoint: Endpoint, what: str) -> str:
    return next((each.error for each in endpoint.breakers.troubles() if each.what.startswith(what)), "")


def was_told(caplog: pytest.LogCaptureFixture, what: str) -> bool:
    """Read from the log, as the next attempt may close the breaker at once."""
    return any(line.startswith(f"{what} failed") and "no answer for" in line for line in caplog.messages)


def hold_up(connection: Connection, timing: str) -> None:
    """Deletes from Sales wait at the gate: ``before`` at once, ``deferred`` at the commit."""
    connection.run(
        "create function at_the_gate() returns trigger language plpgsql as"
        f" $$ begin perform pg_advisory_xact_lock({GATE}); return old; end $$"
    )
    kind = "constraint trigger" if timing == "deferred" else "trigger"
    when = "after delete on" if timing == "deferred" else "before delete on"
    deferred = "deferrable initially deferred" if timing == "deferred" else ""
    connection.run(f'create {kind} gate {when} "Sales" {deferred} for each row execute function at_the_gate()')


def is_settled(endpoint: Endpoint, database: str, placed: list[Any], orders: list[int]) -> None:
    """Each message was handled, and all breakers are closed."""
    until(lambda: not rows(database, "Sales"), what="the queue to be empty")
    until(lambda: len(rows(database, "Out")) == len(orders), what="what the handlers sent")
    until(lambda: not endpoint.breakers.troubles(), what="the breakers to close")
    assert sorted(set(placed)) == orders


def test_a_peek(
    sales: Endpoint, web: Endpoint, relay: Relay, database: str, placed: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The queue is empty; messages sent meanwhile are received once the relay runs again."""
    sales.start()
    web.send("Sales", 1, type=PLACE)
    until(lambda: placed == [1])
    relay.stop()
    until(lambda: "no answer for" in trouble(sales, 'Peeking at "public"."Sales"'))
    assert any(
        line.startswith('Peeking at "public"."Sales" failed') and "since" in line and "select" in line
        for line in caplog.messages
    )
    web.send("Sales", 2, type=PLACE)
    relay.go_on()
    is_settled(sales, database, placed, [1, 2])


@pytest.mark.parametrize("mended", ["go_on", "replace"])
def test_a_receive(
    sales: Endpoint,
    web: Endpoint,
    relay: Relay,
    database: str,
    connection: Connection,
    placed: list[Any],
    spy: Spy,
    mended: str,
) -> None:
    """The server has locked the message, but its answer never comes."""
    hold_up(connection, "before")
    connection.run(f"select pg_advisory_lock({GATE})")
    web.send("Sales", 1, type=PLACE)
    sales.start()
    until(lambda: locks_waited_for(connection) == 1)
    relay.stop()
    connection.run(f"select pg_advisory_unlock({GATE})")
    until(lambda: "no answer for" in trouble(sales, 'Receiving from "public"."Sales"'))
    assert placed == []
    getattr(relay, mended)()
    is_settled(sales, database, placed, [1])
    assert (placed, spy.counts["failed"]) == ([1], 0)


def test_a_commit(
    sales: Endpoint, web: Endpoint, relay: Relay, database: str, connection: Connection, placed: list[Any], spy: Spy
) -> None:
    """It was committed, but the engine cannot know: the message is gone, and its sends happened once."""
    hold_up(connection, "deferred")
    connection.run(f"select pg_advisory_lock({GATE})")
    web.send("Sales", 1, type=PLACE)
    sales.start()
    until(lambda: locks_waited_for(connection) == 1)
    relay.stop()
    connection.run(f"select pg_advisory_unlock({GATE})")
    until(lambda: not rows(database, "Sales"), what="the commit")
    until(lambda: sales.breakers.troubles())
    relay.go_on()
    is_settled(sales, database, placed, [1])
    assert (placed, spy.counts["failed"]) == ([1], 0)


def test_a_commit_that_never_was(
    sales: Endpoint,
    web: Endpoint,
    relay: Relay,
    database: str,
    connection: Connection,
    placed: list[Any],
    spy: Spy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server is held up in it beyond the limit: the message comes back and is handled again."""
    hold_up(connection, "deferred")
    connection.run(f"select pg_advisory_lock({GATE})")
    web.send("Sales", 1, type=PLACE)
    sales.start()
    until(lambda: was_told(caplog, 'Receiving from "public"."Sales"'))
    connection.run(f"select pg_advisory_unlock({GATE})")
    is_settled(sales, database, placed, [1])
    assert spy.counts["failed"] == 0


def test_a_destination_that_is_locked_for_longer(
    sales: Endpoint,
    web: Endpoint,
    database: str,
    connection: Connection,
    placed: list[Any],
    spy: Spy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server lives and waits for a lock: no failure is counted, and nothing is written twice."""
    web.send("Sales", 1, type=PLACE)
    with connection.transaction():
        connection.run('lock table "Out" in access exclusive mode')
        sales.start()
        until(lambda: held_up(connection))
        until(lambda: was_told(caplog, 'Receiving from "public"."Sales"'))
    is_settled(sales, database, placed, [1])
    assert spy.counts["failed"] == 0


def test_send(sales: Endpoint, relay: Relay, database: str) -> None:
    sales.send("Out", 1, type=PLACED)
    relay.stop()
    with pytest.raises(DatabaseDown):
        sales.send("Out", 2, type=PLACED)
    relay.go_on()
    sales.send("Out", 3, type=PLACED)
    assert len(rows(database, "Out")) == 2


def test_the_mover(sales: Endpoint, relay: Relay, database: str, placed: list[Any]) -> None:
    sales.start()
    sales.send("Sales", 1, type=PLACE, delay=timedelta(seconds=0.1))
    until(lambda: placed == [1])
    sales.send("Sales", 2, type=PLACE, delay=timedelta(seconds=1))
    relay.stop()
    until(lambda: "no answer for" in trouble(sales, "Moving due messages of"))
    relay.go_on()
    is_settled(sales, database, placed, [1, 2])


def test_listening_session(sales: Endpoint, relay: Relay, database: str, placed: list[Any]) -> None:
    """It only waits for notifications, so it must check its connection, or it would never hear again."""
    sales.apply(replace(ALONE, peek_delay=10.0))  # anything received sooner was notified
    sales.start()
    sales.send("Sales", 1, type=PLACE)
    until(lambda: placed == [1])
    relay.stop()
    until(lambda: "no answer for" in trouble(sales, "Waking by NOTIFY"))
    relay.go_on()
    until(lambda: not sales.breakers.troubles())
    sales.send("Sales", 2, type=PLACE)
    is_settled(sales, database, placed, [1, 2])


def test_statements_of_a_handler_have_no_limit(
    make_endpoint: MakeEndpoint, web: Endpoint, handlers: Handlers, database: str, spy: Spy
) -> None:
    endpoint = make_endpoint(settings=ALONE, answer_seconds=LIMIT)
    slept: list[Any] = []

    @handlers.handle(PLACE)
    def place(order: Any, context: Any) -> None:
        slept.append(context.connection.value(f"select pg_sleep({3 * LIMIT})::text"))

    web.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: slept and not rows(database, "Sales"))
    assert (len(slept), spy.counts["failed"], endpoint.breakers.troubles()) == (1, 0, [])


def test_a_table_that_is_made_takes_as_long_as_it_takes(make_endpoint: MakeEndpoint, connection: Connection) -> None:
    make_endpoint()
    made = threading.Event()

    def make() -> None:
        make_endpoint(answer_seconds=LIMIT, settings=replace(ALONE, create_message_body_computed_column=True))
        made.set()

    with connection.transaction():
        connection.run('lock table "Sales" in access exclusive mode')
        making = threading.Thread(target=make, daemon=True)
        making.start()
        until(lambda: held_up(connection))
        assert not made.wait(3 * LIMIT)
    making.join()
    assert made.is_set()


@pytest.mark.parametrize(("seconds", "is_open"), [(SECONDS_TO_TRIGGER, True), (1.0, False)])
def test_a_breaker_counts_from_when_it_was_asked(
    seconds: float, is_open: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """After waiting in vain for as long as a breaker waits to open, there is nothing more to wait for."""
    clock: Callable[[], float] = lambda: 100.0  # noqa: E731
    breaker = CircuitBreaker("Receiving from Q", clock)
    breaker.failed(NoAnswer("since 12:00:00 UTC", seconds=seconds))
    assert breaker.triggered is is_open
    (record,) = caplog.records
    assert record.levelno == (logging.ERROR if is_open else logging.WARNING)
    assert [each.seconds for each in [breaker.trouble()] if each] == [seconds]
