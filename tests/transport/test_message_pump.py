"""The peek → receive → peek loop (T9 to T14, T17)."""

import signal
import sys
import threading
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from pgqueue_admin.transport.delayed.due_message_mover import DueMessageMover
from pgqueue_admin.transport.receiving.message_pump import MessagePump
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.transport.statements_log import StatementsLog
from tests.waiting import held_up, until

PING = "Shop.Ping"


@pytest.fixture
def asked(server, connection):
    """Statements of ``Sales`` in the server's log."""
    return StatementsLog(server, connection, "Sales").asked


@pytest.fixture
def gate(handlers):
    """Handlers of PING wait here; ``gate.seen`` has the numbers in the order of starts and ends."""
    gate = threading.Event()
    gate.seen = []  # type: ignore[attr-defined]

    @handlers.handle(PING)
    def ping(number, context):
        gate.seen.append(number)
        if number < 0:
            assert gate.wait(60)
        gate.seen.append(f"{number} done")

    yield gate
    gate.set()


def test_the_first_peek_is_at_once(endpoint, gate):
    """T14: whatever the delay."""
    endpoint.apply(replace(QUICK, peek_delay=600))
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: "1 done" in gate.seen)


def test_then_by_the_delay_which_is_changed_while_it_runs(endpoint, gate, asked):
    """T14, C5: no peek before the delay ends; a shorter delay takes effect at once."""
    endpoint.apply(replace(QUICK, peek_delay=600))
    endpoint.start()
    until(lambda: asked() == ["peek"])
    endpoint.send("Sales", 1, type=PING)
    assert len(rows(endpoint.dsn, "Sales")) == 1
    assert asked() == ["peek"]
    endpoint.apply(replace(QUICK, peek_delay=0.1))
    until(lambda: "1 done" in gate.seen)


@pytest.mark.usefixtures("one_look")
def test_an_empty_receive_goes_straight_back_to_peek(endpoint, gate, connection, asked):
    """T13: two rows far apart look like a thousand; one receive finds nothing, and a peek follows."""
    endpoint.apply(replace(QUICK, peek_delay=600, concurrency=1))
    for number in (1, 2):
        endpoint.send("Sales", number, type=PING)
    connection.run('update "Sales" set seq = 1000 where seq = 2')
    endpoint.start()
    until(lambda: "2 done" in gate.seen)
    until(lambda: asked()[-1:] == ["peek"])
    assert asked() == ["peek", "receive", "receive", "receive", "peek"]


@pytest.mark.usefixtures("one_look")
@pytest.mark.parametrize("held", [True, False], ids=["while handlers run", "when they are done"])
def test_four_slots_go_back_to_peek_after_empty_receives(endpoint, gate, connection, asked, held):
    """T13: of the thousand that the peek counted there are two. Receives under way may be empty; no more follow."""
    endpoint.apply(replace(QUICK, peek_delay=600, concurrency=4))
    numbers = (-1, -2) if held else (1, 2)
    for number in numbers:
        endpoint.send("Sales", number, type=PING)
    connection.run('update "Sales" set seq = 1000 where seq = 2')
    endpoint.start()
    until(lambda: set(numbers) <= set(gate.seen))
    until(lambda: asked()[-1:] == ["peek"] and len(asked()) > 1)
    gate.set()
    finished(endpoint)
    first, *receives, last = asked()
    assert (first, set(receives), last) == ("peek", {"receive"}, "peek")
    in_vain = len(receives) - 2
    assert 1 <= in_vain <= (2 if held else 4)


@pytest.mark.usefixtures("one_look")
def test_two_receivers_ask_no_more_empty_receives_than_slots_per_peek(make_endpoint, gate, asked):
    """T13: each has counted nearly all; a peek leads to no more empty receives than there are slots."""
    many, slots = 200, 4
    both = [make_endpoint(settings=replace(QUICK, peek_delay=600, concurrency=slots)) for _ in range(2)]
    both[0].send_many("Sales", range(-many, 0), type=PING)
    for each in both:
        each.start()
    until(lambda: len(gate.seen) == 2 * slots)
    gate.set()
    until(lambda: rows(both[0].dsn, "Sales") == [])
    until(lambda: asked().count("peek") >= 4)
    for each in both:
        finished(each)
    assert asked().count("receive") - many <= slots * asked().count("peek")


def test_refused_commit_takes_no_pipelined_receive_with_it(endpoint, handlers, connection):
    """A refused commit in between affects no other message, and later ones arrive all the same."""
    connection.run("create table parent (id integer primary key)")
    connection.run("create table child (id integer references parent deferrable initially deferred)")
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        seen.append(number)
        if number == 5 and seen.count(5) == 1:
            context.connection.run("insert into child values (1)")

    endpoint.apply(replace(QUICK, concurrency=1))
    for number in range(10):
        endpoint.send("Sales", number, type=PING)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))
    finished(endpoint)
    assert seen == [*range(6), *range(5, 10)]


@pytest.mark.usefixtures("one_look")
def test_max_records_bounds_the_receives_of_one_peek(endpoint, gate, asked):
    """T17."""
    endpoint.apply(replace(QUICK, peek_delay=600, concurrency=1, max_records_to_peek=2))
    for number in range(4):
        endpoint.send("Sales", number, type=PING)
    endpoint.start()
    until(lambda: "3 done" in gate.seen)
    until(lambda: asked()[-1:] == ["peek"])
    assert asked() == ["peek", "receive", "receive", "peek", "receive", "receive", "peek"]


def test_a_slow_handler_does_not_hold_the_queue(endpoint, gate):
    """T12, the default: back to peek once the receives have answered."""
    endpoint.send("Sales", -1, type=PING)
    endpoint.start()
    until(lambda: gate.seen == [-1])
    for number in (1, 2, 3):
        endpoint.send("Sales", number, type=PING)
    until(lambda: "3 done" in gate.seen)
    assert "-1 done" not in gate.seen


def test_back_to_peek_only_when_handlers_are_done(endpoint, gate):
    """T12, as the document says. An earlier peek would find nothing, and be the last for long."""
    endpoint.apply(replace(QUICK, repeek_after="handlers", peek_delay=600))
    for number in (-1, 1):
        endpoint.send("Sales", number, type=PING)
    endpoint.start()
    until(lambda: "1 done" in gate.seen)
    endpoint.send("Sales", 2, type=PING)
    gate.set()
    until(lambda: "2 done" in gate.seen)
    assert gate.seen.index("-1 done") < gate.seen.index(2)


def test_never_more_at_once_than_concurrency(endpoint, handlers, spy):
    """T11: the limit is reached and never exceeded, even while it changes."""
    together = threading.Barrier(3)

    @handlers.handle("Shop.Meet")
    def meet(message, context):
        together.wait(60)

    endpoint.apply(replace(QUICK, concurrency=3))
    for number in range(12):
        endpoint.send("Sales", number, type="Shop.Meet")
    endpoint.start()
    until(lambda: spy.counts["handled"] == 12)
    finished(endpoint)
    assert spy.most_in_hand == 3


def test_concurrency_changes_while_messages_are_in_hand(endpoint, gate, spy):
    """C5: a higher limit takes effect at once, a lower one as soon as messages in flight are done."""
    for number in (-1, -2, -3, -4):
        endpoint.send("Sales", number, type=PING)
    endpoint.start()
    until(lambda: endpoint.in_flight == 2)
    endpoint.apply(replace(QUICK, concurrency=3))
    until(lambda: endpoint.in_flight == 3)
    endpoint.apply(replace(QUICK, concurrency=1))
    gate.set()
    until(lambda: spy.counts["handled"] == 4)
    until(lambda: not endpoint.in_flight)
    spy.most_in_hand = 0
    for number in range(5):
        endpoint.send("Sales", number, type=PING)
    until(lambda: spy.counts["handled"] == 9)
    assert spy.most_in_hand == 1


def test_two_instances_handle_each_message_once(make_endpoint, handlers):
    """T9: 400 rows, two instances, no row twice and none left."""
    handled: Counter[int] = Counter()
    instances = [make_endpoint(), make_endpoint()]

    @handlers.handle(PING)
    def ping(number, context):
        handled[number] += 1

    for number in range(400):
        instances[0].send("Sales", number, type=PING)
    for instance in instances:
        instance.start()
    until(lambda: len(handled) == 400)
    until(lambda: not rows(instances[0].dsn, "Sales"))
    assert set(handled.values()) == {1}


def test_a_paused_endpoint_receives_nothing_but_sends(endpoint, gate, asked):
    endpoint.pause()
    endpoint.start()
    endpoint.send("Sales", 1, type=PING)
    assert endpoint.paused
    endpoint.resume()
    until(lambda: "1 done" in gate.seen)
    endpoint.pause()
    count = len(asked())
    endpoint.send("Sales", 2, type=PING)
    assert 2 not in gate.seen
    assert len(asked()) <= count + 1  # the peek under way when it was paused
    assert len(rows(endpoint.dsn, "Sales")) == 1


def test_stop_finishes_what_is_in_hand(endpoint, gate):
    endpoint.send("Sales", -1, type=PING)
    endpoint.start()
    until(lambda: gate.seen == [-1])
    threading.Timer(0.2, gate.set).start()
    assert endpoint.stop(drain_seconds=20) is True
    assert rows(endpoint.dsn, "Sales") == []


def test_stop_lets_go_of_what_takes_too_long(endpoint, gate):
    """Its message is back in the queue at once, not when the handler ends."""
    endpoint.send("Sales", -1, type=PING)
    endpoint.start()
    until(lambda: gate.seen == [-1])
    assert endpoint.stop(drain_seconds=0.1) is False
    (row,) = rows(endpoint.dsn, "Sales")
    with endpoint.connect() as other, other.transaction():
        until(lambda: endpoint.queue.receive(other), what="the row is free again")
    gate.set()
    until(lambda: "-1 done" in gate.seen, what="its handler was still at work when the row was free")
    assert row.seq == 1


def test_ctrl_c_ends_no_more_than_the_waiting(endpoint):
    """The peeking thread runs on until ``stop`` has waited for it, and keeps its session until then."""
    endpoint.start()
    (peeking,) = (each for each in threading.enumerate() if each.name == "Sales peek")
    ctrl_c_while_it_waits()
    with pytest.raises(KeyboardInterrupt):
        endpoint.wait()
    assert peeking.is_alive()


def test_stop_waits_for_a_peek_and_keeps_silent_where_it_cuts_it_off(endpoint, connect, caplog):
    """Ending a process that has just begun a peek logs no failure and no retry."""
    endpoint.apply(replace(QUICK, peek_delay=0.01))
    locking = connect(endpoint.dsn)
    with locking.transaction():
        locking.run('lock table "Sales" in access exclusive mode')
        endpoint.start()
        until(lambda: held_up(locking), what="a peek waits for the table")
        ctrl_c_while_it_waits()
        with suppress(KeyboardInterrupt):
            endpoint.wait()
        endpoint.stop()
    assert [line for line in caplog.messages if "failed" in line] == []


def test_ctrl_c_while_it_starts_waits_until_it_has_started(endpoint, gate, monkeypatch):
    """The first message may be handled before all threads run; stop() then finds all of them."""
    start, others = DueMessageMover.start, set(threading.enumerate())
    monkeypatch.setattr(DueMessageMover, "start", lambda mover: (signal.raise_signal(signal.SIGINT), start(mover)))
    endpoint.run()
    assert [each.name for each in set(threading.enumerate()) - others if each.name.startswith("Sales")] == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    monkeypatch.undo()
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: "1 done" in gate.seen, what="it starts again")


def ctrl_c_while_it_waits():
    """Send Ctrl-C to the main thread once it is in ``wait`` and outside our code."""
    main = threading.main_thread().ident

    def waits():
        codes = [frame.f_code for frame, _ in traceback.walk_stack(sys._current_frames()[main])]
        return codes[0].co_filename == threading.__file__ and MessagePump.wait.__code__ in codes

    def press():
        until(waits, what="it waits")
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=press).start()


def test_endpoint_starts_again_after_a_stop(endpoint, gate):
    endpoint.start()
    endpoint.stop()
    endpoint.send("Sales", 1, type=PING)
    endpoint.start()
    until(lambda: "1 done" in gate.seen)
