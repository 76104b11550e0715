"""How often a mover polls, and what wakes it (wire sheet 3)."""

import threading
from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.delayed.due_message_mover import MoverAlarm, MoverPace
from pgqueue_admin.transport.delayed.table import BATCH, DelayedTable
from pgqueue_admin.transport.sending.dispatcher import Dispatcher
from pgqueue_admin.transport.wire.message import OutgoingMessage

SALES = Address("public", "Sales")


def test_idle_mover_looks_less_and_less_often():
    pace = MoverPace()
    assert [pace.after(0, None) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_full_batch_is_followed_at_once():
    assert MoverPace().after(BATCH, 5.0) == 0


@pytest.mark.parametrize(("moved", "due_in", "rest"), [(0, 6.5, 6.5), (0, 100.0, 8), (3, None, 1), (3, 0.25, 0.25)])
def test_mover_wakes_when_the_next_message_is_due(moved, due_in, rest):
    pace = MoverPace()
    for _ in range(3):
        pace.after(0, None)
    assert pace.after(moved, due_in) == rest


def test_back_off_restarts_after_an_exact_wake_up():
    pace = MoverPace()
    for _ in range(5):
        pace.after(0, None)
    assert [pace.after(0, 30.0), pace.after(0, None)] == [30.0, 1]


def test_overdue_rows_of_another_mover_cause_no_busy_loop():
    """Rows overdue by an hour and still there: the original polls a thousand times a second under a skewed zone."""
    pace = MoverPace()
    assert [pace.after(0, -3600.0) for _ in range(3)] == [1, 2, 4]


def test_storing_a_delayed_message_pulls_the_next_look_forward():
    alarm = MoverAlarm()
    resting = threading.Thread(target=alarm.rest, args=[60])
    resting.start()
    alarm.pull_forward(30)
    alarm.pull_forward(0.05)
    resting.join(30)
    assert not resting.is_alive()


def test_a_pull_before_the_rest_counts():
    """The poll under way did not see the message."""
    alarm = MoverAlarm()
    alarm.pull_forward(0)
    resting = threading.Thread(target=alarm.rest, args=[60])
    resting.start()
    resting.join(30)
    assert not resting.is_alive()


def test_earliest_due_message_pulls_the_next_look_forward():
    """Stored in one transaction: waking for the last would leave the others until the next poll."""
    pulled = []
    sender = Dispatcher(postgresql(), DelayedTable(postgresql(), SALES), pulled.append, lambda addresses, count: None)
    sender.stored([OutgoingMessage(SALES, {}, b"", delay=timedelta(minutes=each)) for each in (5, 1, 9)])
    assert pulled == [60]
