"""The two modes besides the default: their guarantees, and what they give up (wire sheet 5)."""

from dataclasses import replace

import pytest

from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.tables import subscriptions
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
RECEIVE_ONLY = replace(QUICK, transaction_mode="receive_only")
NONE = replace(QUICK, transaction_mode="none", immediate_retries=0)

END_OF_RECEIVER = """select pg_terminate_backend(pid, 60000) from pg_stat_activity
    where application_name = 'pgqueue Sales' and query like 'delete from%' and datname = current_database()"""


def test_receive_only_sends_on_its_own(make_endpoint, handlers, database):
    """Only after the handlers succeeded, but before the end of the message is committed."""
    make_endpoint("Billing")
    endpoint = make_endpoint(settings=RECEIVE_ONLY)
    attempts = []

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(1)
        context.send("Billing", len(attempts), type="Shop.Charge")
        if len(attempts) == 1:
            raise ValueError("first")
        if len(attempts) == 2:
            pid = context.connection.value("select pg_backend_pid()")
            with endpoint.connect() as other:
                other.run("select pg_terminate_backend(%s, 60000)", [pid])

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: len(attempts) == 3)
    until(lambda: not rows(database, "Sales"))
    finished(endpoint)
    assert sorted(row.body for row in rows(database, "Billing")) == [b"2", b"3"]  # a ghost: the price of the mode


def test_receive_only_counts_retries(make_endpoint, handlers, database):
    endpoint = make_endpoint(settings=RECEIVE_ONLY)
    attempts = []

    @handlers.handle(PLACE)
    def place(order, context):
        attempts.append(1)
        raise ValueError

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(database, "error"))
    assert len(attempts) == 6


def test_none_deletes_first(make_endpoint, handlers, database):
    """At most once: a failed message is moved away after one attempt, and its sends are dropped."""
    make_endpoint("Billing")
    endpoint = make_endpoint(settings=NONE)
    seen = []

    @handlers.handle(PLACE)
    def place(order, context):
        seen.append((len(rows(database, "Sales")), context.connection))
        context.send("Billing", order, type="Shop.Charge")
        if order == 2:
            raise ValueError

    for number in (1, 2):
        endpoint.send("Sales", number, type=PLACE)
        if number == 1:
            endpoint.start()
            until(lambda: rows(database, "Billing"))
    until(lambda: rows(database, "error"))
    assert seen == [(0, None), (0, None)]
    assert [row.body for row in rows(database, "Billing")] == [b"1"]


def test_none_replaces_a_session_that_ended_while_a_handler_worked(make_endpoint, handlers, connection, caplog):
    """It was idle meanwhile, and a server or pooler may have ended it: no failure, and no pause."""
    endpoint = make_endpoint(settings=replace(NONE, concurrency=1))
    ended, seen = [], []

    @handlers.handle(PLACE)
    def place(order, context):
        if order == 1:
            ended.extend(connection.all(END_OF_RECEIVER))
        seen.append(order)

    for number in (1, 2):
        endpoint.send("Sales", number, type=PLACE)
    endpoint.start()
    until(lambda: seen == [1, 2])
    assert len(ended) == 1
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


def test_none_publishes(make_endpoint, handlers, database):
    make_endpoint("Own").subscribe("Shop.OrderPlaced")
    endpoint = make_endpoint(settings=NONE)
    handlers.handle(PLACE)(lambda order, context: context.publish({}, type="Shop.OrderPlaced"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(database, "Own"))


def test_none_publishes_on_a_session_that_ended_meanwhile(make_endpoint, handlers, connection, database, monkeypatch):
    """It looks up subscribers, and was idle until then; the message is in no queue any more."""
    monkeypatch.setattr(subscriptions, "CACHE_SECONDS", 0)
    make_endpoint("Own").subscribe("Shop.OrderPlaced")
    endpoint = make_endpoint(settings=replace(NONE, concurrency=1))
    own = "select pid from pg_stat_activity where application_name = 'pgqueue Sales' and datname = current_database()"

    @handlers.handle(PLACE)
    def place(order, context):
        connection.all(f"select pg_terminate_backend(pid, 60000) from ({own} and state = 'idle') own")
        context.publish(order, type="Shop.OrderPlaced")

    for number in (1, 2):
        endpoint.send("Sales", number, type=PLACE)
    endpoint.start()
    until(lambda: len(rows(database, "Own")) + len(rows(database, "error")) == 2)
    assert [row.body for row in rows(database, "Own")] == [b"1", b"2"]


def test_a_mode_is_changed_while_it_runs(make_endpoint, handlers, database):
    endpoint = make_endpoint()
    seen = []
    handlers.handle(PLACE)(lambda order, context: seen.append(context.connection is None))
    endpoint.start()
    endpoint.send("Sales", {}, type=PLACE)
    until(lambda: seen == [False])
    endpoint.apply(NONE)
    endpoint.send("Sales", {}, type=PLACE)
    until(lambda: seen == [False, True])


@pytest.mark.parametrize(("before", "after"), [(QUICK, NONE), (RECEIVE_ONLY, NONE), (NONE, QUICK)])
def test_mode_changed_with_a_message_in_flight_leaves_no_transaction(make_endpoint, handlers, database, before, after):
    """The next receive begins together with the previous commit: not if its mode has no transaction."""
    endpoint, seen = make_endpoint(settings=replace(before, concurrency=1)), []

    def handle(order, context):
        if not seen:
            endpoint.apply(replace(after, concurrency=1))
        seen.append(context.connection is None)

    handlers.handle(PLACE)(handle)
    for _ in range(4):
        endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: len(seen) == 4)
    until(lambda: not rows(database, "Sales"), what="what was received is committed")
    assert seen == [before is NONE, *[after is NONE] * 3]


def test_a_handler_whose_database_is_down_in_mode_none_costs_no_message(make_endpoint, handlers, database):
    """Other modes return the message; here it is in no queue any more and would be lost."""
    elsewhere = Endpoint("Elsewhere", "postgresql://127.0.0.1:1/nowhere", send_only=True)
    handlers.handle(PLACE)(lambda order, context: elsewhere.send("Billing", {}, type=PLACE))
    endpoint = make_endpoint(settings=NONE)
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(database, "error"))
    assert len(rows(database, "error")) == 1
    assert rows(database, "Sales") == []


def test_none_says_what_was_lost(make_endpoint, handlers, database, connection, caplog):
    """If neither archive nor error queue accepts it, its headers are at least logged."""
    endpoint = make_endpoint(settings=NONE)
    connection.run("drop table error")
    handlers.handle(PLACE)(lambda order, context: 1 / 0)
    for kind in (PLACE, "Shop.Unknown"):
        endpoint.send("Sales", {}, type=kind, headers={"Tenant": f"tenant of {kind}"})
    endpoint.start()
    until(lambda: caplog.text.count("LOST") == 2)
    lost = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert all("tenant of" in said for said in lost)
    assert rows(database, "Sales") == []


def test_mode_none_keeps_a_control_message_whose_audit_copy_failed(make_endpoint, handlers, database, connection):
    """It is in no queue any more, like one that failed in a handler; only the error queue can keep it."""
    endpoint = make_endpoint(settings=replace(NONE, audit_queue="audit"))
    connection.run("""create function end_of_session() returns trigger language plpgsql as
        'begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return new; end'""")
    connection.run("create trigger ends before insert on audit for each row execute function end_of_session()")
    endpoint.send("Sales", {}, type=PLACE, headers={h.CONTROL_MESSAGE: "True"})
    endpoint.start()
    until(lambda: rows(database, "error"))
    assert rows(database, "Sales") == []
