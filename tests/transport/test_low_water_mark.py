"""Receives skip the dead rows of received messages, and nothing else."""

import threading
from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.queue_store import LOWEST
from pgqueue_admin.transport import OutgoingMessage
from pgqueue_admin.transport.receiving.in_flight import LowWaterMarks
from pgqueue_admin.transport.receiving.message_pump import QueuePeeker
from pgqueue_admin.transport.receiving.receive_transaction import ReceiveTransaction
from pgqueue_admin.transport.tables.table_queue import TableQueue
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.waiting import until

PING = "Shop.Ping"
ONE = replace(QUICK, concurrency=1)
DEAD = 20_000


def test_the_mark_follows_what_is_taken():
    low = LowWaterMarks()
    low.peeked(10)
    low.taken(10, low.mark)
    low.taken(12, low.mark)
    assert low.mark.seq == 13
    low.peeked(4)
    assert low.mark.seq == 4


def test_rolled_back_row_is_not_passed_by_an_earlier_receive():
    """Its answer arrives after the rollback, but from a snapshot in which the row was still locked."""
    low = LowWaterMarks()
    low.peeked(5)
    before = low.mark
    low.taken(6, before)
    low.came_back(5)
    low.taken(7, before)
    assert low.mark.seq == 5
    low.taken(5, low.mark)
    assert low.mark.seq == 6


def test_an_answer_that_is_late_does_not_lower_it():
    low = LowWaterMarks()
    low.peeked(1)
    mark = low.mark
    low.taken(9, mark)
    low.taken(8, mark)
    assert low.mark.seq == 10


def test_each_receive_begins_behind_those_that_are_out():
    low = LowWaterMarks()
    low.peeked(10)
    first, second = low.next_from(50), low.next_from(1)
    assert (first.seq, second.seq, low.mark.seq) == (10, 60, 61)
    low.taken(60, second)
    low.taken(59, first)
    assert low.mark.seq == 61
    low.came_back(12)
    assert low.next_from(50).seq == 12
    low.peeked(11)
    assert low.mark.seq == 11


def asked(endpoint, monkeypatch):
    """The lower bound of each receive statement."""
    lows, receiving = [], TableQueue.receiving

    def spied(queue, low, most=1):
        lows.append(low)
        return receiving(queue, low, most)

    monkeypatch.setattr(TableQueue, "receiving", spied)
    return lows


@pytest.mark.parametrize("size", [1, 5])
def test_slots_do_not_look_through_what_others_have_in_hand(endpoint, handlers, monkeypatch, size):
    lows, all_in_hand = asked(endpoint, monkeypatch), threading.Barrier(4)
    handlers.handle(PING)(lambda number, context: number % size or all_in_hand.wait(60))
    endpoint.apply(replace(QUICK, concurrency=4, batch_size=size))
    endpoint.send_many("Sales", range(4 * size), type=PING)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert sorted(lows)[:4] == [1 + size * number for number in range(4)]


@pytest.mark.usefixtures("one_look")
def test_a_receive_that_is_begun_again_passes_over_nothing(endpoint, handlers, monkeypatch):
    """Behind a pooler no receive begins together with the previous commit: each receive is sent twice."""
    lows = asked(endpoint, monkeypatch)
    monkeypatch.setattr(
        ReceiveTransaction, "commit_and_begin", lambda transaction, receiving: (transaction.session, None)
    )
    handled = []
    handlers.handle(PING)(lambda number, context: handled.append(number))
    endpoint.apply(replace(QUICK, concurrency=2))
    endpoint.send_many("Sales", range(40), type=PING)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert sorted(handled) == list(range(40))
    assert sorted(lows) == list(range(1, max(lows) + 1))


def buffers(connection, statement, params):
    lines = connection.all(f"explain (analyze, buffers, timing off, format json) {statement}", params)
    return lines[0][0][0]["Plan"]["Shared Hit Blocks"], str(lines[0][0])


def test_dead_rows_below_the_mark_cost_nothing(queue, connection, connect, database):
    """An old snapshot holds back vacuum; from the lowest seq a receive walks through all dead rows."""
    holder = connect(database)
    holder.run("begin isolation level repeatable read")
    holder.value("select count(*) from pg_class")
    queue.send(connection, [OutgoingMessage(queue.address, {}, b"") for _ in range(DEAD + 10)])
    connection.run('delete from "Sales" where seq <= %s', [DEAD])
    connection.run('analyze "Sales"')
    receive = queue.receiving()[0].as_string(connection.raw).replace("%(low)s", "({low})")
    walked, _ = buffers(connection, receive.format(low=0), None)
    passed, plan = buffers(connection, receive.format(low=DEAD + 1), None)
    assert passed * 3 < walked
    assert "Sales_seq_key" in plan


def test_a_row_that_comes_back_between_the_two_looks_of_a_peek(queue, connection):
    """The lowest row was locked, the highest no longer is: one waits, and the mark skips nothing."""
    queue.send(connection, [OutgoingMessage(queue.address, {}, b"")])
    connection.run("create sequence looks")
    connection.run("""create view "Coming back" as select * from "Sales" where nextval('looks') > 1""")
    assert TableQueue(postgresql(), Address("public", "Coming back")).look(connection) == (1, LOWEST)
    assert queue.look(connection) == (1, 1)


def test_a_million_rows_are_found_by_the_index(queue, connection):
    """Whatever the planner makes of an empty table's statistics."""
    connection.run(
        """insert into "Sales" (id, headers, body) select gen_random_uuid(), '{}', '' from generate_series(1, 50000)"""
    )
    for (statement, _), pages in ((queue.receiving(), 60), (queue.receiving(most=50), 600)):
        receive = statement.as_string(connection.raw).replace("%(low)s", "({low})")
        for low in (-(2**63), 25_000):
            touched, plan = buffers(connection, receive.format(low=low), None)
            assert "Seq Scan" not in plan
            assert touched < pages


def test_a_lower_seq_that_commits_late_is_not_missed(endpoint, handlers, connection, monkeypatch):
    """Neither in an idle queue, at the next peek, nor in a busy one, before its backlog is done.

    Two receivers skip rows below the mark until a peek sets it anew, here after 0.1 s. In that time handlers of 0.01 s
    finish twenty messages, or fewer on a slow machine.
    """
    monkeypatch.setattr(QueuePeeker, "good_for", 0.1)
    handled, committed, never = [], threading.Event(), threading.Event()

    @handlers.handle(PING)
    def ping(number, context):
        handled.append(number)
        if number > 20:
            assert committed.wait(60)
        if -1 not in handled:
            never.wait(0.01)

    with connection.transaction():
        endpoint.queue.send(connection, [endpoint._outbound.send("Sales", -1, PING, {}, None)])
        endpoint.send_many("Sales", range(200), type=PING)
        endpoint.start()
        until(lambda: len(handled) > 20)
    committed.set()
    until(lambda: -1 in handled)
    assert handled.index(-1) < 100
    until(lambda: len(handled) == 201)
    with connection.transaction():
        endpoint.queue.send(connection, [endpoint._outbound.send("Sales", -2, PING, {}, None)])
        endpoint.send("Sales", 500, type=PING)
        until(lambda: 500 in handled)
    until(lambda: -2 in handled)


def test_failed_message_is_retried_next(endpoint, handlers):
    """Not only at the next peek: with one receiver, failures keep the order too."""
    tried = []

    @handlers.handle(PING)
    def ping(number, context):
        tried.append(number)
        if number % 10 == 3 and tried.count(number) < 3:
            raise RuntimeError

    endpoint.apply(ONE)
    for number in range(40):
        endpoint.send("Sales", number, type=PING)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert tried == sorted(tried)
    assert tried.count(3) == tried.count(33) == 3


def test_seqs_below_zero_are_messages_too(endpoint, handlers, connection):
    """No sequence creates them, but a row moved by hand may have one."""
    handled = []
    handlers.handle(PING)(lambda number, context: handled.append(number))
    endpoint.send("Sales", 1, type=PING)
    connection.run('update "Sales" set seq = -5')
    endpoint.start()
    until(lambda: handled == [1])


def test_single_receiver_keeps_the_order_of_a_late_producer(endpoint, handlers, connection):
    """Its first message has the lower seq and becomes visible while higher ones are handled; its second follows."""
    handled, gate = [], threading.Event()

    @handlers.handle(PING)
    def ping(number, context):
        handled.append(number)
        if number == 0:
            assert gate.wait(60)

    endpoint.apply(ONE)
    with connection.transaction():
        endpoint.queue.send(connection, [endpoint._outbound.send("Sales", 100, PING, {}, None)])
        for number in range(3):
            endpoint.send("Sales", number, type=PING)
        endpoint.start()
        until(lambda: handled == [0])
    endpoint.send("Sales", 101, type=PING)
    gate.set()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert handled == [0, 100, 1, 2, 101]
