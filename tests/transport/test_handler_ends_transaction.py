"""Handlers that end their message's transaction: each fails alone and sends nothing."""

from dataclasses import replace

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PING = "Shop.Ping"
ONE = replace(QUICK, concurrency=1)
CALM = 40


@pytest.mark.parametrize("word", ["commit", "rollback"])
def test_a_handler_that_ends_the_transaction_is_told(endpoint, handlers, caplog, word):
    """The message's guarantees end with it, so it counts as a failure, not as a success."""
    attempts = []

    @handlers.handle(PING)
    def ping(number, context):
        attempts.append(1)
        context.connection.run(word)

    endpoint.apply(ONE)
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: "ended the transaction by commit" in caplog.text, 20)
    until(lambda: not rows(endpoint.dsn, "Sales"), 20)
    assert len(attempts) == (1 if word == "commit" else 6)
    assert len(rows(endpoint.dsn, "error")) == (0 if word == "commit" else 1)


AGAIN = [("commit", 1, 0), ("rollback", 6, 1)]


@pytest.mark.parametrize(("word", "tried", "dead"), AGAIN)
@pytest.mark.parametrize("mode", ["sends_atomic_with_receive", "receive_only"])
def test_a_handler_that_ends_the_transaction_and_begins_another(make_endpoint, handlers, spy, mode, word, tried, dead):
    """Its writes and sends were meant for one commit with the message: it fails, and none of them is committed."""
    make_endpoint("Billing")

    @handlers.handle(PING)
    def ping(number, context):
        context.send("Billing", number, type="Shop.Pong")
        session = context.connection
        session.run(word)
        session.run("begin")
        session.run("create table written_behind ()")

    endpoint = make_endpoint(settings=replace(ONE, transaction_mode=mode))
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: spy.counts["failed"] == tried and not rows(endpoint.dsn, "Sales"), 20)
    finished(endpoint)
    assert (spy.counts["failed"], spy.counts["handled"]) == (tried, 0)
    assert len(rows(endpoint.dsn, "error")) == dead
    assert len(rows(endpoint.dsn, "Billing")) == (0 if mode == "sends_atomic_with_receive" else tried)
    with postgresql().connect(endpoint.dsn, for_handlers=True) as connection:
        assert connection.value("select to_regclass('written_behind')") is None


@pytest.fixture
def batch_of_ten(make_endpoint, handlers):
    """``batch_of_ten(at_fault, act, retries)``: each message sends, then acts. All but ``at_fault`` are handled, and
    their sends happen once.
    """

    def run(at_fault, act, retries):
        make_endpoint("Billing")
        handled = []

        @handlers.handle(PING)
        def ping(number, context):
            context.send("Billing", number, type="Shop.Pong")
            handled.append(number)
            act(number, context)

        endpoint = make_endpoint(settings=replace(QUICK, concurrency=1, batch_size=10, immediate_retries=retries))
        endpoint.send_many("Sales", range(10), type=PING)
        endpoint.start()
        others = set(range(10)) - {at_fault}
        until(lambda: others <= set(handled) and not rows(endpoint.dsn, "Sales"), 20)
        finished(endpoint)
        assert sorted(int(row.body) for row in rows(endpoint.dsn, "Billing")) == sorted(others)
        assert len(rows(endpoint.dsn, "error")) == 1

    return run


@pytest.mark.parametrize("word", ["commit", "rollback"])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_handler_that_ends_the_transaction_of_a_batch_harms_no_other(batch_of_ten, word, retries):
    def act(number, context):
        if number == 3:
            context.connection.run(word)

    batch_of_ten(3, act, retries)


@pytest.mark.parametrize("word", ["commit", "rollback"])
@pytest.mark.parametrize("then", ["goes on", "raises", "is refused"])
@pytest.mark.parametrize("retries", [0, 1])
def test_handler_that_begins_another_transaction_harms_no_other(batch_of_ten, word, then, retries):
    def act(number, context):
        if number == 3:
            session = context.connection
            session.run(word)
            session.run("begin")
            if then == "raises":
                raise ZeroDivisionError
            if then == "is refused":
                session.run("select 1 / 0")

    batch_of_ten(3, act, retries)


def test_rollback_through_another_messages_session_harms_no_other(batch_of_ten):
    """The driver's connection, kept in a cache: its rollback finds no savepoint and raises no error."""
    kept = []

    def act(number, context):
        if number == 0:
            kept.append(context.connection.raw)
        if number == 1:
            kept[0].execute("rollback")

    batch_of_ten(1, act, retries=1)


@pytest.mark.parametrize("where", ["its own session", "that of another message"])
def test_rolled_back_messages_taken_elsewhere_are_not_sent_for(make_endpoint, handlers, connect, database, where):
    """Its row is gone, as after a commit. The other receiver sends for it, and for all that came back with it."""
    make_endpoint("Billing")
    kept, handled, taken = [], [], []

    @handlers.handle(PING)
    def ping(number, context):
        context.send("Billing", number, type="Shop.Pong")
        handled.append(number)
        if number == 0:
            kept.append(context.connection.raw)
        if number == 3:
            session = context.connection.raw if where == "its own session" else kept[0]
            session.execute("rollback")
            taken.append(connect(database).run('delete from "Sales"'))

    endpoint = make_endpoint(settings=replace(QUICK, concurrency=1, batch_size=10, immediate_retries=0))
    endpoint.send_many("Sales", range(10), type=PING)
    endpoint.start()
    until(lambda: taken == [10])
    endpoint.send("Sales", 10, type=PING)
    until(lambda: rows(database, "Billing"))
    finished(endpoint)
    assert handled == [0, 1, 2, 3, 10]
    assert [row.body for row in rows(database, "Billing")] == [b"10"]
