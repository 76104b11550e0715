"""What handlers may do with their message's session and context, and with those kept from an earlier message."""

from dataclasses import replace

import pytest

from pgqueue_admin.transport.errors import HandlerFinished, SessionBelongsToMessage
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

PING = "Shop.Ping"
MODES = {
    "one by one": replace(QUICK, concurrency=1),
    "receive only": replace(QUICK, concurrency=1, transaction_mode="receive_only"),
    "a batch": replace(QUICK, concurrency=1, batch_size=5),
}


@pytest.fixture(params=MODES)
def settings(request):
    return replace(MODES[request.param], immediate_retries=1)


@pytest.fixture
def four_of_five(make_endpoint, handlers, spy, settings):
    """``four_of_five(act)``: the second message runs ``act``, is tried twice and ends in the error queue. The others
    are handled, and each one's sends happen once.
    """

    def run(act):
        make_endpoint("Billing")

        @handlers.handle(PING)
        def ping(number, context):
            context.send("Billing", number, type="Shop.Pong")
            if number == 1:
                act(context)

        endpoint = make_endpoint(settings=settings)
        endpoint.send_many("Sales", range(5), type=PING)
        endpoint.start()
        until(lambda: not rows(endpoint.dsn, "Sales"))
        finished(endpoint)
        assert [row.body for row in rows(endpoint.dsn, "error")] == [b"1"]
        sent = [row.body for row in rows(endpoint.dsn, "Billing") if row.body != b"1"]
        assert sorted(sent) == [b"0", b"2", b"3", b"4"]
        assert spy.counts["handled"] == 4

    return run


def test_handler_that_closes_the_session_is_refused(four_of_five):
    """The block would close it at its end."""
    told = []

    def act(context):
        for close in (context.connection.close, context.connection.abort, context.connection.__enter__):
            with pytest.raises(SessionBelongsToMessage) as refused:
                close()
            told.append(str(refused.value))
        with context.connection:
            pass

    four_of_five(act)
    assert all("does not close the session" in each for each in told)


def test_handler_that_closes_the_raw_connection_fails(four_of_five, spy):
    """Taken for a lost database, it was retried for ever, and later messages were never handled."""
    four_of_five(lambda context: context.connection.raw.close())
    assert "closed the session" in "".join(map(str, spy.errors))


def test_handler_that_closes_the_raw_connection_and_raises_fails(four_of_five):
    def act(context):
        context.connection.raw.close()
        raise ZeroDivisionError

    four_of_five(act)


@pytest.mark.parametrize("then", ["returns", "raises"])
@pytest.mark.parametrize("left", ["a stream", "a copy"])
def test_handler_that_leaves_a_result_unread_fails(four_of_five, left, then):
    """The driver would wait for ever for a reader: the slot hung, and its row with it."""
    kept = []

    def act(context):
        cursor = context.connection.raw.cursor()
        if left == "a stream":
            kept.append(cursor.stream("select generate_series(1, 100000)"))
            next(kept[-1])
        else:
            kept.append(cursor.copy("copy (select generate_series(1, 100000)) to stdout"))
            kept[-1].__enter__()
        if then == "raises":
            raise ZeroDivisionError

    four_of_five(act)


def test_session_setting_of_a_handler_stops_no_later_message(make_endpoint, handlers, settings):
    """Without ``local`` it outlives the transaction: the slot's next receive is refused, then gets a new session."""
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        seen.append(number)
        context.connection.run("set default_transaction_read_only = on")

    endpoint = make_endpoint(settings=replace(settings, batch_size=1))
    endpoint.send_many("Sales", range(3), type=PING)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("batch_size", [1, 5])
def test_a_session_of_an_earlier_message_refuses(make_endpoint, handlers, spy, batch_size):
    """Also a rollback and begin, which would silently end the current message's transaction."""
    kept, told = [], []

    @handlers.handle(PING)
    def ping(number, context):
        kept.append(context.connection)
        for word in ("rollback", "begin") if number else ():
            with pytest.raises(HandlerFinished) as refused:
                kept[0].run(word)
            told.append(str(refused.value))

    endpoint = make_endpoint(settings=replace(QUICK, concurrency=1, batch_size=batch_size))
    endpoint.send_many("Sales", range(3), type=PING)
    endpoint.start()
    until(lambda: spy.counts["handled"] == 3)
    assert len(told) == 4
    assert "message is over" in told[0]


@pytest.mark.parametrize("immediate", [False, True])
def test_send_after_the_message_has_ended_is_refused(make_endpoint, handlers, spy, immediate):
    """For example by a handler's thread: it would return an id, and nothing would be sent."""
    kept = []
    handlers.handle(PING)(lambda number, context: kept.append(context))
    endpoint = make_endpoint()
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: spy.counts["handled"] == 1)
    with pytest.raises(HandlerFinished):
        kept[0].send("Sales", 2, type=PING, immediate=immediate)
    with pytest.raises(HandlerFinished):
        kept[0].publish(2, type=PING, immediate=immediate)
    with pytest.raises(HandlerFinished):
        _ = kept[0].connection
