"""Rows that the error queue refuses as they are, and repeated starts and stops: the endpoint never hangs."""

import threading
import uuid
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import psycopg
import pytest

from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"


def put(database: str, table: str, row_id: uuid.UUID, headers: str) -> None:
    with psycopg.connect(database, autocommit=True) as session:
        session.execute(f'insert into "{table}" (id, headers, body) values (%s, %s, %s)', (row_id, headers, b"x"))


@pytest.mark.parametrize("batch_size", [1, 5])
def test_a_row_whose_id_the_error_queue_has_already(batch_size, database, make_endpoint, handlers):
    """Copied back by hand: it gets another id there, and later messages are handled."""
    taken, done = uuid.uuid4(), threading.Event()
    handlers.handle(PLACE)(lambda message, context: done.set())
    endpoint = make_endpoint(settings=replace(QUICK, concurrency=1, batch_size=batch_size))
    for table in ("error", "Sales"):
        put(database, table, taken, '{"a":1}')
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(done.is_set, what="the message behind it is handled")
    until(lambda: not rows(database, "Sales"), what="the queue is empty")
    kept = rows(database, "error")
    assert [(row.headers, bytes(row.body)) for row in kept] == [('{"a":1}', b"x")] * 2
    assert taken in {row.id for row in kept}


@pytest.mark.parametrize("batch_size", [1, 5])
def test_a_row_goes_to_an_error_queue_that_may_only_be_sent_to(
    batch_size, database, connection, make_endpoint, handlers
):
    """A sender's rights on it suffice, for unreadable messages too; later messages are handled."""
    done, row_id = threading.Event(), uuid.uuid4()
    handlers.handle(PLACE)(lambda message, context: done.set())
    owner = make_endpoint()
    put(database, "Sales", row_id, '{"a":')
    owner.send("Sales", {}, type=PLACE)
    connection.run("drop role if exists only_sends; create role only_sends login password 'sends'")
    connection.run('grant all on "Sales", "Sales.Delayed", "SubscriptionRouting", "Sales_seq_seq" to only_sends')
    connection.run("grant insert on error to only_sends; grant usage on error_seq_seq to only_sends")
    at = urlsplit(database)
    dsn = at._replace(netloc=f"only_sends:sends@{at.hostname}:{at.port}").geturl()
    lowly = Endpoint("Sales", dsn, settings=replace(QUICK, concurrency=1, batch_size=batch_size), handlers=handlers)
    try:
        lowly.start()
        until(done.is_set, what="the message behind it is handled")
        until(lambda: not rows(database, "Sales"), what="the queue is empty")
    finally:
        lowly.stop(0)
        connection.run("drop owned by only_sends; drop role only_sends")
    assert [(row.id, row.headers, bytes(row.body)) for row in rows(database, "error")] == [(row_id, '{"a":', b"x")]


@pytest.mark.parametrize("text", ["null", " null", "null\n", "\tnull "])
def test_a_null_with_white_space_is_one(text, database, make_endpoint):
    """In an error queue it would stop a platform's ingestion for good."""
    endpoint = make_endpoint()
    put(database, "Sales", uuid.uuid4(), text)
    endpoint.start()
    until(lambda: rows(database, "error"), what="it is in the error queue")
    (row,) = rows(database, "error")
    assert h.EXCEPTION_TYPE in h.parse(row.headers)


def test_failed_forward_in_mode_none_goes_to_the_error_queue(database, make_endpoint):
    """Its row is deleted already, so no retry is possible: it goes to the error queue."""
    settings = replace(QUICK, transaction_mode="none", immediate_retries=0)
    endpoint = make_endpoint(dsn=f"{database}?options=-c%20lock_timeout%3D300", settings=settings)
    make_endpoint("Billing")
    endpoint.send("Billing", {}, type=PLACE, delay=timedelta(milliseconds=10))
    with psycopg.connect(database) as locking:
        locking.execute('lock table "Billing" in access exclusive mode')
        endpoint.start()
        until(lambda: rows(database, "error"), what="it is in the error queue")
    assert len(rows(database, "error")) == 1
    assert not rows(database, "Billing")


def test_endpoint_does_not_start_twice(make_endpoint, handlers, spy):
    handlers.handle(PLACE)(lambda message, context: None)
    endpoint = make_endpoint()
    endpoint.start()
    with pytest.raises(RuntimeError, match="Sales receives already"):
        endpoint.start()
    endpoint.send("Sales", {}, type=PLACE)
    until(lambda: spy.counts["handled"] == 1, what="it is handled")
    endpoint.stop()
    assert not [thread.name for thread in threading.enumerate() if thread.name in {"Sales peek", "Sales due"}]
    endpoint.start()
    endpoint.send("Sales", {}, type=PLACE)
    until(lambda: spy.counts["handled"] == 2, what="it is handled")


def test_run_returns_when_what_is_in_hand_is_finished(make_endpoint, handlers):
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    @handlers.handle(PLACE)
    def slow(message, context):
        begun.set()
        go_on.wait(30)
        done.set()

    endpoint = make_endpoint()
    endpoint.send("Sales", {}, type=PLACE)
    running = threading.Thread(target=endpoint.run)
    running.start()
    begun.wait(30)
    stopping = threading.Thread(target=endpoint.stop)
    stopping.start()
    running.join(1)
    assert running.is_alive()
    go_on.set()
    running.join(30)
    stopping.join(30)
    assert done.is_set()
    assert not running.is_alive()


def test_a_handler_that_stops_its_endpoint_is_told_that_it_cannot(make_endpoint, handlers, spy):
    """It would wait for itself. If another thread stops the endpoint, the handler finishes first."""
    said = []

    @handlers.handle(PLACE)
    def stops(message, context):
        with pytest.raises(RuntimeError, match="a handler of Sales cannot wait for its own end"):
            endpoint.stop()
        said.append(threading.Thread(target=endpoint.stop))
        said[0].start()

    endpoint = make_endpoint()
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: spy.counts["handled"] == 1, what="it is handled")
    said[0].join(30)
    assert not said[0].is_alive()
    assert not rows(endpoint.dsn, "Sales")


def test_a_database_that_is_serializable_by_default(database, connection, make_endpoint, handlers, spy):
    """Parallel receives would fail with conflicts."""
    connection.run(f"alter database {database.rpartition('/')[2]} set default_transaction_isolation = 'serializable'")
    seen = set()
    handlers.handle(PLACE)(lambda _, context: seen.add(context.connection.value("show transaction_isolation")))
    endpoint = make_endpoint(settings=replace(QUICK, concurrency=4))
    endpoint.send_many("Sales", range(200), type=PLACE)
    endpoint.start()
    until(lambda: spy.counts["handled"] == 200, what="all are handled")
    endpoint.stop()
    assert (seen, spy.counts["failed"]) == ({"read committed"}, 0)


@pytest.mark.parametrize("encoded", ["LATIN1", "SQL_ASCII"], indirect=True)
def test_a_database_of_another_encoding(encoded, make_endpoint, handlers, spy):
    seen = []
    handlers.handle(PLACE)(lambda message, context: seen.append(message))
    endpoint = make_endpoint(dsn=encoded)
    endpoint.start()
    endpoint.send("Sales", {"name": "Zoë"}, type=PLACE, headers={"Shop.Who": "Zoë"})
    until(lambda: seen, what="it is handled")
    endpoint.stop()
    assert seen == [{"name": "Zoë"}]


@pytest.mark.parametrize("encoded", ["LATIN1", "WIN1252", "EUC_TW", "SQL_ASCII"], indirect=True)
def test_letters_that_a_database_does_not_have_stop_nothing(encoded, make_endpoint, handlers):
    """JSON can contain any of them: in sends, by COPY, and in failure texts."""
    said = "Zoë owes 12 € 😀 \u0142"
    seen = []

    @handlers.handle(PLACE)
    def fails(message, context):
        seen.append(context.headers["Shop.Who"])
        raise ValueError(said)

    endpoint = make_endpoint(dsn=encoded, settings=replace(QUICK, immediate_retries=0, delayed_retries=0))
    endpoint.start()
    endpoint.send("Sales", {}, type=PLACE, headers={"Shop.Who": said})
    endpoint.send_many("Sales", [{}] * 30, type=PLACE, headers={"Shop.Who": said})
    until(lambda: len(rows(encoded, "error")) == 31, what="all are in the error queue")
    endpoint.stop()
    assert set(seen) == {said}
    found = [h.parse(row.headers) for row in rows(encoded, "error")]
    assert {headers["Shop.Who"] for headers in found} == {headers[h.EXCEPTION_MESSAGE] for headers in found} == {said}
