"""Several messages per transaction: one savepoint each, one commit, and each message fails or succeeds alone."""

import threading
import time
from dataclasses import replace

import pytest

from pgqueue_admin.monitor import depth, discovery
from pgqueue_admin.transport import Unrecoverable
from pgqueue_admin.transport.receiving.pump_state import SingleReceiveFallback
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.transport.statements_log import StatementsLog
from tests.transport.test_crashes import terminate
from tests.waiting import until

PING, FINE = "Shop.Ping", "Shop.Fine"
TEN = replace(QUICK, concurrency=1, batch_size=10)


@pytest.fixture
def endpoint(make_endpoint):
    return make_endpoint(settings=TEN)


@pytest.fixture
def log(server, connection):
    return StatementsLog(server, connection, "Sales")


@pytest.fixture
def handled(handlers):
    """Numbers of FINE in the order of handling."""
    numbers = []

    @handlers.handle(FINE)
    def fine(number, context):
        numbers.append(number)

    return numbers


def fill(endpoint, numbers, kind=FINE):
    for number in numbers:
        endpoint.send(endpoint.name, number, type=kind)


@pytest.mark.usefixtures("one_look")
def test_ten_rows_are_one_delete_and_one_commit(endpoint, handled, log):
    """No savepoint if nothing is written; a batch that is not full is the last, and a peek follows."""
    endpoint.apply(replace(TEN, peek_delay=600))
    fill(endpoint, range(25))
    endpoint.start()
    until(lambda: len(handled) == 25)
    until(lambda: log.asked()[-1:] == ["peek"])
    finished(endpoint)
    assert handled == list(range(25))
    assert log.asked() == ["peek", "receive", "receive", "receive", "peek"]
    assert log.count("savepoint") == 0
    assert rows(endpoint.dsn, "Sales") == []


def test_expired_messages_of_a_batch_are_not_handled(endpoint, handled, connection, spy):
    """T3: dropped and counted while the others are handled."""
    fill(endpoint, range(4))
    connection.run(
        """update "Sales" set expires = now() at time zone 'utc' - interval '1 s' where body in ('1', '3')"""
    )
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    finished(endpoint)
    assert (handled, spy.expired_types) == ([0, 2], [FINE, FINE])


def test_a_processing_time_ends_with_the_handlers_of_its_message(endpoint, handlers, spy):
    """Run in turn, their times cannot add up to more than the time from the first to the last."""
    began, pause = [], threading.Event()

    @handlers.handle(FINE)
    def fine(number, context):
        began.append(time.monotonic())
        pause.wait(0.05)

    fill(endpoint, range(10))
    endpoint.start()
    until(lambda: spy.counts["handled"] == 10)
    assert min(spy.processing_times) >= 0.05
    assert sum(spy.processing_times[:-1]) <= began[-1] - began[0] + spy.processing_times[0] - 0.05


@pytest.mark.usefixtures("one_look")
@pytest.mark.parametrize(("most", "waiting", "a_peek"), [(20, 35, 2), (15, 29, 2), (4, 7, 1)])
def test_max_records_to_peek_bounds_the_batches(endpoint, handled, log, most, waiting, a_peek):
    """T17: for 20 records two batches start, for 15 one and a half, for 4 less than one."""
    endpoint.apply(replace(TEN, peek_delay=600, max_records_to_peek=most))
    fill(endpoint, range(waiting))
    endpoint.start()
    until(lambda: len(handled) == waiting)
    until(lambda: log.asked()[-1:] == ["peek"])
    assert log.asked() == [*["peek", *["receive"] * a_peek] * 2, "peek"]


def test_failed_message_of_a_batch_fails_alone(endpoint, handlers, handled, make_endpoint, spy, database):
    """It is retried in its place; its writes and sends are rolled back, the others' committed once."""
    make_endpoint("Billing")
    tried = []

    @handlers.handle(PING)
    def ping(number, context):
        tried.append(len(handled))
        context.connection.run("create table written_by_a_failed_handler ()")
        context.send("Billing", number, type="Shop.Never")
        raise ValueError(number)

    @handlers.handle(FINE)
    def onward(number, context):
        context.send("Billing", number, type="Shop.Charge")

    fill(endpoint, range(4))
    fill(endpoint, [4], PING)
    fill(endpoint, range(5, 10))
    endpoint.start()
    until(lambda: rows(database, "error"))
    assert tried == [4] * 6
    assert handled == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert [row.body for row in rows(database, "Billing")] == [b"%d" % number for number in handled]
    assert rows(database, "Sales") == []
    assert h.parse(rows(database, "error")[0].headers)[h.EXCEPTION_MESSAGE] == "4"
    until(lambda: spy.counts["handled"] == 9)
    assert (spy.counts["failed"], spy.counts["retried"]) == (6, 5)


def test_a_delayed_retry_leaves_with_the_batch(endpoint, handlers, handled, database):
    endpoint.apply(replace(TEN, immediate_retries=1, delayed_retries=1, delayed_retry_step=3600))
    handlers.handle(PING)(lambda number, context: 1 / 0)
    fill(endpoint, [1])
    fill(endpoint, [2], PING)
    fill(endpoint, [3])
    endpoint.start()
    until(lambda: handled == [1, 3])
    until(lambda: not rows(database, "Sales"))
    with endpoint.connect() as connection:
        assert connection.value('select count(*) from "Sales.Delayed"') == 1


def test_every_message_of_a_batch_is_counted_in_flight(endpoint, handlers, handled, connection):
    """A row deleted inside a savepoint would not count as in flight."""
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        context.connection.value("select 1")
        table = discovery.find_one(connection, endpoint.queue.address)
        seen.append(depth.measure(connection, table))

    fill(endpoint, [1, 2])
    fill(endpoint, [3], PING)
    endpoint.start()
    until(lambda: seen)
    assert (seen[0].depth, seen[0].in_flight, seen[0].ready) == (3, 3, 0)


def test_a_commit_that_is_refused_is_the_fault_of_one(endpoint, handlers, handled, connection, database):
    """All messages come back, are received one by one, and the one at fault ends in the error queue."""
    connection.run("create table parent (id integer primary key)")
    connection.run("create table child (id integer references parent deferrable initially deferred)")
    connection.run("create table done (number integer)")
    handlers.handle(PING)(lambda number, context: context.connection.run("insert into child values (1)"))
    handlers.handle(FINE)(
        lambda number, context: context.connection.run("insert into done values (%s)", [number]),
    )
    fill(endpoint, range(4))
    fill(endpoint, [4], PING)
    fill(endpoint, range(5, 10))
    endpoint.start()
    until(lambda: rows(database, "error"))
    until(lambda: not rows(database, "Sales"))
    done = [row.number for row in connection.all("select number from done")]
    assert sorted(done) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_message_no_queue_takes_holds_up_no_other(make_endpoint, handlers, handled, connection, database):
    """One slot keeps it through its pause; once an error queue exists, it goes there."""
    endpoint = make_endpoint(settings=replace(TEN, concurrency=2))
    connection.run("drop table error")

    @handlers.handle(PING)
    def ping(number, context):
        raise Unrecoverable

    fill(endpoint, [1], PING)
    fill(endpoint, range(2, 12))
    endpoint.start()
    until(lambda: not [row for row in rows(database, "Sales") if row.seq > 1])
    assert set(handled) == set(range(2, 12))
    endpoint.create_queues()
    until(lambda: rows(database, "error"))
    assert rows(database, "Sales") == []


def test_a_session_that_ends_under_a_batch(endpoint, handlers, handled, make_endpoint, connection, spy, database):
    """All messages come back, nothing is sent twice, and none counts as failed."""
    make_endpoint("Billing")

    @handlers.handle(FINE)
    def onward(number, context):
        context.send("Billing", number, type="Shop.Charge")
        if handled == [0, 1, 2, 3]:
            terminate(connection)

    fill(endpoint, range(6))
    endpoint.start()
    until(lambda: len(rows(database, "Billing")) == 6)
    assert handled == [0, 1, 2, 3, *range(6)]
    assert [row.body for row in rows(database, "Billing")] == [b"%d" % number for number in range(6)]
    assert (spy.counts["failed"], rows(database, "Sales")) == (0, [])


def test_receive_only_sends_message_by_message(make_endpoint, handlers, database):
    make_endpoint("Billing")
    endpoint = make_endpoint(settings=replace(TEN, transaction_mode="receive_only", immediate_retries=0))
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        seen.append(len(rows(database, "Billing")))
        context.send("Billing", number, type="Shop.Charge")
        if number == 1:
            raise ValueError

    fill(endpoint, range(3), PING)
    endpoint.start()
    until(lambda: rows(database, "error"))
    assert seen == [0, 1, 1]
    assert [row.body for row in rows(database, "Billing")] == [b"0", b"2"]


def test_timed_out_batch_is_received_again_one_by_one(endpoint, handlers, handled, connection, database, caplog):
    """idle_in_transaction_session_timeout ends the batch's transaction: one by one, the messages succeed."""
    first = []

    @handlers.handle(PING)
    def ping(number, context):
        if not first:
            first.append(context.connection.value("select pg_backend_pid()"))
            context.connection.run("set idle_in_transaction_session_timeout = '100ms'")
            running = "select count(*) from pg_stat_activity where pid = %s"
            until(lambda: not connection.value(running, first))

    fill(endpoint, [1, 2])
    fill(endpoint, [3], PING)
    endpoint.start()
    until(lambda: not rows(database, "Sales"), 30)
    assert "A batch of 3 is received again one by one" in caplog.text
    assert set(handled) == {1, 2}
    assert rows(database, "error") == []


def test_batch_size_changes_at_run_time(endpoint, handled, log):
    endpoint.apply(replace(TEN, batch_size=1, peek_delay=600))
    fill(endpoint, [1])
    endpoint.start()
    one = ["peek", "receive", "peek"]
    until(lambda: handled == [1] and log.asked() == one)
    fill(endpoint, range(2, 12))
    endpoint.apply(replace(TEN, peek_delay=600))
    until(lambda: len(handled) == 11)
    until(lambda: len(log.asked()) >= 6)
    assert log.asked() == one * 2


def test_a_batch_ends_in_the_mode_it_began_in(endpoint, handlers, make_endpoint, database, monkeypatch):
    """Settings change to none just after a batch was chosen: its sends still wait for its commit."""
    none = replace(QUICK, concurrency=1, transaction_mode="none", immediate_retries=0)
    make_endpoint("Billing")
    seen = []

    def changed_meanwhile(self):
        endpoint.apply(none)
        return False

    @handlers.handle(PING)
    def ping(number, context):
        seen.append((context.connection is not None, len(rows(database, "Billing"))))
        context.send("Billing", number, type="Shop.Charge")

    monkeypatch.setattr(SingleReceiveFallback, "is_next", changed_meanwhile)
    fill(endpoint, range(3), PING)
    endpoint.start()
    until(lambda: len(rows(database, "Billing")) == 3)
    assert seen == [(True, 0)] * 3
