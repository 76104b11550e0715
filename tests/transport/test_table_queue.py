"""Send, receive, peek and purge, statement by statement (T2 to T10)."""

from contextlib import suppress
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire.message import OutgoingMessage

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def out(body=b"x", ttbr=None, **headers):
    return OutgoingMessage(Address("public", "Sales"), headers, body, ttbr)


def test_a_message_comes_back_as_it_was_sent(queue, connection):
    sent = out(b"\0\xff", a="1")
    queue.send(connection, [sent])
    received = queue.receive(connection)
    assert (UUID(received.row_id).version, received.headers, received.body) == (4, {"a": "1"}, b"\0\xff")
    assert (received.expired, received.unreadable, received.queue) == (False, "", queue.address)
    assert queue.receive(connection) is None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.dictionaries(TEXTS, TEXTS | st.none()), st.binary()), min_size=1, max_size=3))
def test_any_headers_and_bodies_survive(queue, connection, messages):
    queue.send(connection, [OutgoingMessage(queue.address, headers, body) for headers, body in messages])
    received = [queue.receive(connection) for _ in messages]
    assert [(each.headers, each.body) for each in received] == messages


def test_a_message_without_any_time_has_expired_at_once(queue, connection):
    """Wire sheet 2.3: expiring at this very moment counts as expired; both sides use the transaction's start."""
    with connection.transaction():
        queue.send(connection, [OutgoingMessage(queue.address, {}, b"", timedelta())])
        assert queue.receive(connection).expired


def test_a_batch_keeps_its_order(queue, connection):
    """T7, T8."""
    bodies = [str(number).encode() for number in range(250)]
    queue.send(connection, [out(body) for body in bodies])
    assert [queue.receive(connection).body for _ in bodies] == bodies


def test_an_empty_batch_is_nothing(queue, connection):
    queue.send(connection, [])
    assert queue.peek(connection) == 0


@pytest.mark.parametrize("others", [0, 1])
def test_expiry_is_by_the_servers_clock(queue, connection, others):
    """T3, T8: UTC without a zone, from the start of the transaction; alone or in a batch."""
    with connection.transaction():
        queue.send(connection, [out(ttbr=timedelta(seconds=90)), *[out()] * others])
        expires = connection.value("select expires - (now() at time zone 'utc') from \"Sales\" order by seq limit 1")
    assert expires == timedelta(seconds=90)


def test_a_ttbr_longer_than_the_original_can_hold(queue, connection):
    queue.send(connection, [out(ttbr=timedelta(days=30))])
    assert connection.value("select expires > now() at time zone 'utc' + interval '29 days' from \"Sales\"") is True


@pytest.mark.parametrize(
    ("expires", "expired"),
    [("infinity", False), ("-infinity", True), ("9999-12-31", False), ("0044-03-15 BC", True), ("2020-01-01", True)],
)
def test_infinite_and_ancient_expiries_are_judged(queue, connection, expires, expired):
    insert = 'insert into "Sales" (id, expires, headers, body) values (%s, %s::timestamp, %s, %s)'
    connection.run(insert, [uuid4(), expires, "{}", b""])
    assert queue.receive(connection).expired is expired


def test_peek_counts_the_span(queue, connection, database, connect):
    """T10: highest minus lowest plus one, over unlocked rows."""
    assert queue.peek(connection) == 0
    queue.send(connection, [out() for _ in range(10)])
    assert queue.peek(connection) == 10
    connection.run('delete from "Sales" where seq between 3 and 8')
    assert queue.peek(connection) == 10
    with connection.transaction():
        queue.receive(connection)
        other = connect(database)
        assert queue.peek(other) == 9
        connection.run('select from "Sales" for update')
        assert queue.peek(other) == 0
    connection.run('delete from "Sales" where seq < 10')
    assert queue.peek(connection) == 1


def test_a_span_over_two_billion_is_a_number(queue, connection):
    """The original's peek fails here, and the endpoint stops (wire sheet 2.8)."""
    connection.run('alter table "Sales" alter seq type bigint')
    queue.send(connection, [out(), out()])
    connection.run('update "Sales" set seq = 5000000000 where seq = 2')
    assert queue.peek(connection) == 5_000_000_000


def test_receivers_pass_each_other(queue, connection, database, connect):
    """T9: none waits for a row that another has locked."""
    queue.send(connection, [out(b"1"), out(b"2")])
    other = connect(database, statement_timeout=20)
    with connection.transaction(), other.transaction():
        assert (queue.receive(connection).body, queue.receive(other).body) == (b"1", b"2")
        assert queue.receive(other) is None


def test_a_rolled_back_receive_returns_to_the_head(queue, connection):
    queue.send(connection, [out(b"1"), out(b"2")])
    with suppress(ZeroDivisionError), connection.transaction():
        first = queue.receive(connection)
        raise ZeroDivisionError
    again = queue.receive(connection)
    assert (again.row_id, again.seq, again.body) == (first.row_id, first.seq, b"1")
