"""Failed handlers: what is rolled back, how often it is retried, where it ends (wire sheet 5, 8.1)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.transport import Unrecoverable
from pgqueue_admin.transport.receiving.in_flight import InFlightRows
from pgqueue_admin.transport.recoverability.failure_cache import FailureCache
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.wire_times import parse_time
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
RECEIVED = """select count(*) from pg_stat_activity where datname = current_database()
              and state = 'idle in transaction' and query like 'delete from "public"."Sales"%'"""


class Declined(Exception):
    """An error of the handler."""


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def failing(handlers, error):
    calls = []

    @handlers.handle(PLACE)
    def place(order, context):
        calls.append(context.message.row_id)
        context.send("error", "sent by a failed handler", type="Shop.Never")
        raise type(error)(*error.args)

    return calls


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_immediate_retries_are_counted(endpoint, handlers, spy, retries):
    """First attempt and retries follow at once, not after the peek delay; then the error queue."""
    endpoint.apply(replace(QUICK, immediate_retries=retries, peek_delay=600))
    calls = failing(handlers, Declined("no"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert len(calls) == retries + 1 == spy.counts["failed"]
    assert spy.counts["retried"] == retries
    assert len(set(calls)) == 1
    assert rows(endpoint.dsn, "Sales") == []


@pytest.mark.parametrize("error", [Unrecoverable("bad"), Declined("listed")])
def test_unrecoverable_exceptions_are_not_retried(make_endpoint, handlers, error, spy):
    handlers.unrecoverable = (Declined,)
    endpoint = make_endpoint()
    calls = failing(handlers, error)
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert len(calls) == 1
    assert spy.counts["retried"] == 0


@pytest.mark.parametrize("error", [Mute(), SystemExit(3), KeyboardInterrupt(), Declined("half a character \ud83d")])
def test_exceptions_that_are_trouble_themselves(endpoint, handlers, error):
    """One without a readable message loops for ever in the original (wire sheet 13)."""
    failing(handlers, error)
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    (row,) = rows(endpoint.dsn, "error")
    assert h.parse(row.headers)[h.EXCEPTION_TYPE].endswith(type(error).__name__)


def test_an_error_copy_has_the_shape_of_a_recorded_one(endpoint, handlers, recording):
    """Wire sheet 7.2, 8.1: header names, formats, and the kept parts of the message."""
    failing(handlers, Declined("Card refused: 51 <b>"))
    message_id = endpoint.send(
        "Sales",
        {"n": 1},
        type=PLACE,
        ttbr=timedelta(hours=1),
        headers={h.RETRIES: "3", h.FL_RETRIES: "1", h.RETRIES_TIMESTAMP: "2026-11-14 12:26:51:355787 Z"},
    )
    (sent,) = rows(endpoint.dsn, "Sales")
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    (row,) = rows(endpoint.dsn, "error")
    ours = h.parse(row.headers)
    recorded = next(
        headers
        for headers in (h.parse(each.headers) for each in rows(recording, "error"))
        if headers.get(h.EXCEPTION_TYPE) == "Shop.Billing.PaymentGateway+RefusedException"
    )
    faults = {name for name in recorded if name.startswith((*h.FAILURE_PREFIXES, "NServiceBus.Processing", "$.diag"))}
    assert faults - {h.RETRIES_TIMESTAMP} <= set(ours)
    assert {name for name in set(ours) - set(recorded)} <= {h.RETRIES_TIMESTAMP, h.TIME_TO_BE_RECEIVED}
    assert row.expires is None
    assert row.body == sent.body
    assert row.id != sent.id
    assert ours[h.MESSAGE_ID] == message_id == ours[h.EXCEPTION_DATA + "Message ID"]
    assert ours[h.EXCEPTION_DATA + "Transport message ID"] == str(sent.id)
    assert (h.RETRIES in ours, h.FL_RETRIES in ours, h.RETRIES_TIMESTAMP in ours) == (False, False, True)
    assert ours[h.FAILED_Q] == '"public"."Sales"'
    assert ours[h.PROCESSING_ENDPOINT] == "Sales"
    assert ours[h.EXCEPTION_TYPE] == "tests.transport.test_failing.Declined"
    assert ours[h.EXCEPTION_MESSAGE] == "Card refused: 51 <b>"
    assert ours[h.EXCEPTION_DATA + "Message type"] == PLACE
    times = [name for name in ours if name.endswith((" time", "TimeOfFailure", "TimeSent"))]
    assert len(times) == 4
    assert all(parse_time(ours[name]) for name in times)
    trace = ours[h.EXCEPTION_STACK_TRACE]
    assert "in place" in trace
    assert trace.rstrip().endswith("Declined: Card refused: 51 <b>")
    assert "pgqueue_admin" not in trace
    assert {**h.strip_failure(ours)}.items() >= {h.MESSAGE_ID: message_id, h.ENCLOSED_MESSAGE_TYPES: PLACE}.items()


def test_a_long_message_and_its_cause(endpoint, handlers):
    @handlers.handle(PLACE)
    def place(order, context):
        try:
            raise TimeoutError("gateway")
        except TimeoutError as cause:
            raise Declined("x" * 20_000) from cause

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    headers = h.parse(rows(endpoint.dsn, "error")[0].headers)
    assert headers[h.INNER_EXCEPTION_TYPE] == "TimeoutError"
    assert len(headers[h.EXCEPTION_MESSAGE]) == 16_384
    assert "TimeoutError: gateway" in headers[h.EXCEPTION_STACK_TRACE]


def test_sends_of_a_failed_handler_are_rolled_back(endpoint, handlers, make_endpoint):
    """Default mode: also an earlier handler's writes through the receive's session."""
    make_endpoint("Billing")
    attempts = []

    @handlers.handle(PLACE)
    def first(order, context):
        context.connection.run("create table if not exists business (attempt integer)")
        context.connection.run("insert into business values (%s)", [len(attempts)])
        context.send("Billing", len(attempts), type="Shop.Charge")
        context.send("Billing", "at once", type="Shop.Notice", immediate=True)

    @handlers.handle(PLACE)
    def second(order, context):
        attempts.append(1)
        if len(attempts) < 3:
            raise Declined

    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: len(attempts) == 3)
    until(lambda: not rows(endpoint.dsn, "Sales"))
    bodies = [row.body for row in rows(endpoint.dsn, "Billing")]
    assert sorted(bodies) == [b'"at once"'] * 3 + [b"2"]
    with endpoint.connect() as connection:
        assert [row.attempt for row in connection.all("select * from business")] == [2]


def test_a_missing_destination_fails_the_message(make_endpoint, handlers, spy):
    endpoint = make_endpoint(settings=replace(QUICK, concurrency=1))
    handlers.handle(PLACE)(lambda order, context: context.send("Nowhere", {}, type="Shop.Charge"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    headers = h.parse(rows(endpoint.dsn, "error")[0].headers)
    assert headers[h.EXCEPTION_TYPE].endswith("TableMissing")
    assert spy.counts["failed"] == 6


def test_second_slot_waits_until_a_refused_send_is_counted(make_endpoint, handlers, connection, spy, monkeypatch):
    """PostgreSQL releases the row at the refused statement: the second slot gets it before the first can count."""
    remember, has_it = FailureCache.remember, []

    def looking(self, *given):
        has_it.append(until(lambda: connection.value(RECEIVED)))
        return remember(self, *given)

    monkeypatch.setattr(FailureCache, "remember", looking)
    monkeypatch.setattr(InFlightRows, "longest", 600.0)
    endpoint = make_endpoint(settings=replace(QUICK, concurrency=2, immediate_retries=0))
    handlers.handle(PLACE)(lambda order, context: context.send("Nowhere", {}, type="Shop.Charge"))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert (len(has_it), spy.counts["failed"]) == (1, 1)


def test_a_swallowed_sql_error_is_a_failure_not_a_loop(endpoint, handlers, spy):
    """The server would answer the commit with a rollback, and the message would come back for ever."""

    @handlers.handle(PLACE)
    def place(order, context):
        with pytest.raises(DatabaseError):
            context.connection.run("select 1 / 0")

    endpoint.apply(replace(QUICK, concurrency=1))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert (spy.counts["failed"], spy.counts["handled"]) == (6, 0)


def test_a_commit_that_is_refused_is_a_failure(endpoint, handlers, connection, spy):
    connection.run("create table parent (id integer primary key)")
    connection.run("create table child (id integer references parent deferrable initially deferred)")

    @handlers.handle(PLACE)
    def place(order, context):
        context.connection.run("insert into child values (1)")

    endpoint.apply(replace(QUICK, concurrency=1))
    endpoint.send("Sales", {}, type=PLACE)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert (spy.counts["failed"], spy.counts["handled"]) == (6, 0)
