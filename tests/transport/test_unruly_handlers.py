"""Badly written handlers and messages: each message ends somewhere, and the engine keeps running."""

from dataclasses import replace
from functools import partial

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.transport import BehaviourChain, Tracing
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, insert, rows
from tests.transport.statements_log import StatementsLog
from tests.transport.tampering import rate
from tests.waiting import until

PING = "Shop.Ping"
ONE = replace(QUICK, concurrency=1)
CALM = 40


class Mute(Exception):
    def __str__(self):
        raise SystemExit


def fail(number, context):
    raise Mute


def test_an_error_that_wants_to_exit_when_it_is_asked_what_it_is(endpoint, handlers, spy):
    """It would end its thread, and the slot would be lost."""
    handlers.handle(PING)(fail)
    handlers.handle("Shop.Pong")(lambda number, context: None)
    endpoint.apply(ONE)
    endpoint.send("Sales", 1, type=PING)
    endpoint.send("Sales", 1, type="Shop.Pong")
    endpoint.start()
    until(lambda: spy.counts["handled"] == 1)
    (row,) = rows(endpoint.dsn, "error")
    assert "could not be read" in h.parse(row.headers)[h.EXCEPTION_MESSAGE]


async def promise(number, context):
    raise AssertionError("never run")


def each(number, context):
    yield number


def hidden(number, context):
    return promise(number, context)


@pytest.mark.parametrize("handler", [promise, each, partial(promise)])
def test_a_handler_that_a_call_does_not_run_is_refused(handlers, handler):
    """As ported from .NET: the call only creates a coroutine, and the message was lost with nothing done."""
    with pytest.raises(TypeError, match="is async, or a generator"):
        handlers.handle(PING)(handler)


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("pipeline", ["none", "a behaviour", "traced"])
def test_async_handler_hidden_in_a_function_fails(make_endpoint, handlers, spy, pipeline):
    handlers.handle(PING)((lambda number, context: None) if pipeline == "a behaviour" else hidden)
    pipelines = {
        "none": BehaviourChain(),
        "a behaviour": BehaviourChain((lambda get_next: hidden,)),
        "traced": BehaviourChain(tracing=Tracing()),
    }
    endpoint = make_endpoint(settings=replace(QUICK, immediate_retries=0), pipeline=pipelines[pipeline])
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert "is async, or a generator" in str(spy.errors[0])
    assert spy.counts["handled"] == 0


@pytest.mark.parametrize("retries", ["-99999999999999999999", "-5", "99999999999999999999", "three", "1.5", "٣", None])
def test_any_number_of_retries(endpoint, handlers, connection, server, retries):
    """A valid number is counted, an invalid one is not: the message is delayed or dead, and never loops."""
    asked = StatementsLog(server, connection, "Sales").asked
    handlers.handle(PING)(lambda number, context: 1 / 0)
    endpoint.apply(replace(ONE, delayed_retries=3, immediate_retries=0))
    insert(endpoint.dsn, "Sales", h.dump({h.ENCLOSED_MESSAGE_TYPES: PING, h.RETRIES: retries}))
    endpoint.start()
    kept = 'select count(*) from (select from error union all select from "Sales.Delayed" where due > now()) t'
    until(lambda: connection.value(kept) == 1)
    assert rows(endpoint.dsn, "Sales") == []
    assert rate(asked, 0.5) < CALM


def test_a_transaction_that_takes_longer_than_the_server_allows(endpoint, handlers, connection, spy):
    """The handler sets idle_in_transaction_session_timeout: it recurs each time, so it counts as an attempt."""

    @handlers.handle(PING)
    def ping(number, context):
        pid = context.connection.value("select pg_backend_pid()")
        context.connection.run("set idle_in_transaction_session_timeout = '100ms'")
        running = "select count(*) from pg_stat_activity where pid = %s"
        until(lambda: not connection.value(running, [pid]), 20)

    endpoint.apply(replace(ONE, immediate_retries=1))
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "error"), 20)
    assert "took longer" in h.parse(rows(endpoint.dsn, "error")[0].headers)[h.EXCEPTION_MESSAGE]
    finished(endpoint)
    assert spy.counts["failed"] == 2


def test_a_delayed_row_whose_id_lies_in_the_queue_already(endpoint, connection):
    """Copied by hand, perhaps: it gets another id, and other due messages are moved too."""
    endpoint.pause()
    endpoint.send("Sales", 1, type=PING)
    copy = 'insert into "Sales.Delayed" (id, headers, body, due) select {}, headers, body, now() from "Sales"'
    connection.run(copy.format("id"))
    connection.run(copy.format("gen_random_uuid()"))
    endpoint.start()
    until(lambda: len(rows(endpoint.dsn, "Sales")) == 3)


@pytest.mark.parametrize("due", ["-infinity", "4713-01-01 BC", "now"])
def test_only_delayed_rows_that_are_due_are_handled(endpoint, handlers, connection, due):
    seen = []
    handlers.handle(PING)(lambda number, context: seen.append(number))
    kept = 'insert into "Sales.Delayed" (headers, body, due) values (%s, %s, %s)'
    headers = h.dump({h.ENCLOSED_MESSAGE_TYPES: PING})
    for body, when in ((b"1", "infinity"), (b"2", "294276-12-31"), (b"3", due)):
        connection.run(kept, [headers, body, when])
    endpoint.start()
    until(lambda: seen == [3])
    assert connection.value('select count(*) from "Sales.Delayed"') == 2


WEIRD = {
    "nul": {h.MESSAGE_ID: "a\0b", h.ENCLOSED_MESSAGE_TYPES: "Shop.\0Ping, A", h.CONVERSATION_ID: "\0"},
    "empty": {"": "", h.ENCLOSED_MESSAGE_TYPES: ";;,;", h.MESSAGE_ID: ""},
    "long": {"X" * 50_000: "y" * 5_000_000, h.ENCLOSED_MESSAGE_TYPES: "Z" * 100_000, h.MESSAGE_ID: "m" * 100_000},
    "times": {h.TIME_SENT: "0000-00-00 00:00:00:000000 Z", h.DELIVER_AT: "9999-12-31 23:59:59:999999 Z"},
    "early": {h.TIME_SENT: "0001-01-01 00:00:00:000000 Z", h.TIME_TO_BE_RECEIVED: "99999999.00:00:00"},
    "astral": {"🛒": "\U0010ffff\ufffe\ud7ff", h.ENCLOSED_MESSAGE_TYPES: "Größe.日本, 🛒"},
    "null": dict.fromkeys([h.MESSAGE_ID, h.ENCLOSED_MESSAGE_TYPES, h.TIME_SENT, h.REPLY_TO_ADDRESS, h.CONTENT_TYPE]),
    "forward": {h.FORWARD_DESTINATION: '"a""b"."c\0d"'},
    "forward to nowhere": {h.FORWARD_DESTINATION: "."},
    "forward too far": {h.FORWARD_DESTINATION: "x" * 200},
}


@pytest.mark.parametrize("kind", WEIRD)
@pytest.mark.parametrize("settings", [QUICK, replace(QUICK, on_exhausted="archive")], ids=["error queue", "archive"])
def test_weird_headers_end_where_an_operator_finds_them(make_endpoint, engine_database, connect, kind, settings):
    """Unprocessed, in the error queue or the archive; later messages are handled."""

    def bury(connection, message, failure):
        store.archive_failed(connection, dead_message(message, failure, endpoint.dialect))

    endpoint = make_endpoint(dsn=engine_database, settings=settings, exhausted=bury)
    seen = []
    endpoint.handlers.handle(PING)(lambda number, context: seen.append(number))
    insert(engine_database, "Sales", h.dump(WEIRD[kind]), b"{}")
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: seen == [1])
    until(lambda: not rows(engine_database, "Sales"))
    dead = connect(engine_database).value("select count(*) from messages.message_archive where state = 'dead'")
    assert dead + len(rows(engine_database, "error")) == 1


def test_a_large_body_passes_through(endpoint, handlers):
    """40 MB through send, receive, a failure and the error queue, byte for byte."""
    body = bytes(range(256)) * 160 * 1024
    endpoint.send("Sales", body, type="Shop.Unknown", headers={h.CONTENT_TYPE: "application/octet-stream"})
    endpoint.start()
    (row,) = until(lambda: rows(endpoint.dsn, "error"))
    assert row.body == body
