"""Circuit breakers: failures are reported, and operation resumes without a restart (wire sheet 6)."""

import threading
from dataclasses import replace

import pytest

from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.transport import Unrecoverable
from pgqueue_admin.transport.sessions.circuit_breaker import BreakerTrouble, CircuitBreaker, CircuitBreakers
from tests.hostile.proxy import Proxy
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import insert, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
ALONE = replace(QUICK, concurrency=1, notify=True)


def troubled(endpoint):
    return {trouble.what.split(' "')[0]: trouble for trouble in endpoint.breakers.troubles()}


@pytest.fixture
def wire(database):
    """A relay between the endpoint and its server."""
    proxy = Proxy(database)
    yield proxy
    proxy.cut()


def test_a_cut_wire_is_seen_and_mended(make_endpoint, handlers, wire, database, spy):
    """During a handler too: its message comes back, counts no failure, and no restart is needed."""
    endpoint = make_endpoint(dsn=wire.dsn, settings=ALONE)
    attempts, sent = [], threading.Event()

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(order)
        if order == 2 and attempts.count(2) == 1:
            assert sent.wait(60)  # the send must be answered before the cut, as it uses the same relay
            wire.cut()

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: attempts == [1], 20)
    assert troubled(endpoint) == {}
    endpoint.send("Sales", 2, type=PLACE)
    sent.set()
    until(lambda: troubled(endpoint).get("Peeking at"), 30)
    peeking = troubled(endpoint)["Peeking at"]
    assert (peeking.triggered, bool(peeking.error)) == (False, True)
    assert len(rows(database, "Sales")) == 1
    wire.mend()
    until(lambda: not rows(database, "Sales"), 30)
    until(lambda: troubled(endpoint) == {}, 30)
    assert attempts == [1, 2, 2]
    assert spy.counts["failed"] == 0


def test_a_locked_table_is_not_waited_for_in_silence(make_endpoint, handlers, connection):
    """The original ends a peek after half a minute; here the limit is shorter to save time."""
    endpoint = make_endpoint(settings=ALONE, answer_seconds=0.2)
    with connection.transaction():
        connection.run('lock table "Sales"')
        endpoint.start()
        until(lambda: "Peeking at" in troubled(endpoint), 20)
    until(lambda: troubled(endpoint) == {}, 20)


def test_breaker_shows_a_missing_error_queue(make_endpoint, handlers, connection):
    endpoint = make_endpoint(settings=ALONE)
    connection.run("drop table error")

    @handlers.handle(PLACE)
    def place(order, context):
        raise Unrecoverable

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: "Putting away what failed in" in troubled(endpoint), 20)
    endpoint.create_queues()
    until(lambda: rows(endpoint.dsn, "error"), 30)
    until(lambda: troubled(endpoint) == {}, 20)


def test_a_commit_that_is_refused_after_it_was_put_away_is_seen(make_endpoint, handlers, connection):
    """The message is next to be received again: without a pause that would loop at full speed."""
    endpoint = make_endpoint(settings=ALONE)
    connection.run(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'not this one'; end $$;"
        "create constraint trigger refuse after insert on error"
        " deferrable initially deferred for each row execute function refuse()"
    )

    @handlers.handle(PLACE)
    def place(order, context):
        raise Unrecoverable

    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: "Receiving from" in troubled(endpoint), 20)
    assert "not this one" in troubled(endpoint)["Receiving from"].error
    connection.run("drop trigger refuse on error")
    until(lambda: rows(endpoint.dsn, "error"), 30)
    until(lambda: troubled(endpoint) == {}, 20)


def test_a_receive_that_is_refused_is_seen(make_endpoint, handlers, connection):
    """The queue can be peeked at but not received from."""
    endpoint = make_endpoint(settings=ALONE)
    handled = []
    handlers.handle(PLACE)(lambda order, context: handled.append(order))
    connection.run(
        "create function refuse() returns trigger language plpgsql as $$ begin raise 'no deletes'; end $$;"
        'create trigger refuse before delete on "Sales" for each row execute function refuse()'
    )
    endpoint.send("Sales", 1, type=PLACE)
    endpoint.start()
    until(lambda: "Receiving from" in troubled(endpoint), 20)
    assert "no deletes" in troubled(endpoint)["Receiving from"].error
    connection.run('drop trigger refuse on "Sales"')
    until(lambda: handled == [1], 30)
    until(lambda: troubled(endpoint) == {}, 20)


def test_endpoint_locks_only_messages_that_handlers_have(make_endpoint, handlers, connection):
    """A crash returns these to the queue; there is nothing else to lose."""
    endpoint = make_endpoint(settings=replace(ALONE, concurrency=2))
    free, together = [], threading.Barrier(2)

    @handlers.handle(PLACE)
    def place(order, context):
        if order == 0:
            if together.wait(30) == 0:
                free.append(connection.value('select count(*) from (select from "Sales" for update skip locked) free'))
            together.wait(30)

    endpoint.pause()
    endpoint.start()
    for number in (0, 0, *range(1, 8)):
        endpoint.send("Sales", number, type=PLACE)
    endpoint.resume()
    until(lambda: free, 30)
    assert free == [7]


def test_a_row_that_cannot_be_read_arms_nothing(make_endpoint, handlers, database):
    endpoint = make_endpoint(settings=ALONE)
    insert(database, "Sales", "null")
    endpoint.start()
    until(lambda: rows(database, "error"), 20)
    assert troubled(endpoint) == {}


# Reports on an endpoint name its circuit breakers that are not closed.
@pytest.fixture
def now(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(CircuitBreaker.__init__, "__defaults__", (lambda: now[0],))
    return now


def test_trouble_is_listed_until_the_breaker_closes(now):
    breakers = CircuitBreakers()
    breaker = breakers.new("Receiving from somewhere")
    assert breakers.troubles() == []
    breaker.failed(DatabaseDown("refused"))
    now[0] = 31
    (armed,) = breakers.troubles()
    assert armed == BreakerTrouble(
        "Receiving from somewhere", 31, "The database does not answer. refused", triggered=False
    )
    breaker.failed(DatabaseDown("still refused"))
    now[0] = 40
    (told,) = breakers.troubles()
    assert told == BreakerTrouble(
        "Receiving from somewhere", 40, "The database does not answer. still refused", triggered=True
    )
    breaker.succeeded()
    assert breakers.troubles() == []


def test_new_breaker_replaces_the_one_of_the_same_name():
    breakers = CircuitBreakers()
    breakers.new("Peeking").failed(DatabaseDown())
    breakers.new("Peeking")
    assert breakers.troubles() == []
