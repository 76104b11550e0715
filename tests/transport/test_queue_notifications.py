"""A new message is noticed at once between our sender and our receiver, otherwise after the peek delay."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.transport.sessions import queue_notifications
from pgqueue_admin.transport.sessions.queue_notifications import channel
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import insert, rows
from tests.waiting import until

PING = "Shop.Ping"
SLOW = replace(QUICK, notify=True, peek_delay=600)  # longer than any wait here: only a wake-up is in time
SALES = channel(postgresql(), Address("public", "Sales"))


@pytest.fixture
def handled(handlers):
    handled = []
    handlers.handle(PING)(lambda body, context: handled.append(body))
    return handled


def rests(receiver):
    """Whether it has nothing in flight and waits for its peek delay or a wake-up, with none pending."""
    signals = receiver._receivers.by_queue[receiver.queue.address]._signals
    with signals.changed:
        return not signals._woken and not receiver.in_flight and bool(signals.changed._waiters)


@pytest.fixture
def patient(monkeypatch):
    """The sender's last notification is waited for, however slow the machine is."""
    monkeypatch.setattr(queue_notifications, "LAST_SECONDS", 60.0)


@pytest.fixture
def listening(monkeypatch):
    """``listening(receiver, act)``: after ``act``, wait until it listens and has peeked for earlier sends."""

    def listening(receiver, act=None):
        hear, heard = receiver._heard, threading.Event()
        monkeypatch.setattr(receiver, "_heard", lambda of: (hear(of), heard.set()))
        (act or receiver.start)()
        assert heard.wait(60), "it looks again once it listens"
        until(lambda: rests(receiver))

    return listening


def heard(listener, seconds=0.5):
    """Notifications until none has come for that long."""
    found = []
    while more := list(listener.notifications(timeout=seconds)):
        found += more
    return found


def told(listener):
    """Like ``heard``, but at least one must come."""
    return until(lambda: list(listener.notifications(timeout=0.1))) + heard(listener)


def test_a_sender_elsewhere_wakes_a_receiver(make_endpoint, handled, listening):
    receiver, sender = make_endpoint(settings=SLOW), make_endpoint("Shop.Web", settings=SLOW)
    listening(receiver)
    for number in range(3):
        sender.send("Sales", number, type=PING)
        until(lambda number=number: number in handled)


def test_due_delayed_message_wakes_its_receiver(make_endpoint, handled, listening):
    """Its mover inserts it into the queue, which notifies like any send."""
    receiver = make_endpoint(settings=SLOW)
    listening(receiver)
    receiver.send("Sales", "due", type=PING, delay=timedelta(seconds=0.3))
    until(lambda: handled == ["due"])


def test_a_handler_wakes_the_receiver_of_what_it_sent(make_endpoint, handlers, handled, listening):
    make_endpoint("Billing", settings=SLOW).start()
    receiver = make_endpoint(settings=SLOW)
    handlers.handle("Shop.PlaceOrder")(lambda body, context: context.send("Billing", "charge", type=PING))
    listening(receiver)
    receiver.send("Sales", {}, type="Shop.PlaceOrder")
    until(lambda: handled == ["charge"])


def test_foreign_send_waits_for_the_peek_delay(make_endpoint, handled, listening):
    """There is no trigger on the table: a foreign sender notifies nobody."""
    receiver = make_endpoint(settings=SLOW)
    listening(receiver)
    insert(receiver.dsn, "Sales", '{"NServiceBus.EnclosedMessageTypes":"Shop.Ping"}', b"1")
    assert len(rows(receiver.dsn, "Sales")) == 1
    receiver.apply(replace(SLOW, peek_delay=0.1))
    until(lambda: handled == [1])


@pytest.mark.parametrize(
    ("rush", "apart"), [pytest.param(1e9, "APART_SECONDS", id="few"), pytest.param(0, "RUSH_SECONDS", id="a rush")]
)
def test_many_sends_share_a_notification(rush, apart, make_endpoint, connect, database, monkeypatch, patient):
    """All sends before the next allowed notification share it; here it goes out when the sender stops."""
    for name, value in {"RUSH": rush, "APART_SECONDS": 0.0, "RUSH_SECONDS": 0.0, apart: 600.0}.items():
        monkeypatch.setattr(queue_notifications, name, value)
    sender, listener = make_endpoint(settings=SLOW), connect(database)
    listener.listen(SALES)
    for number in range(300):
        sender.send("Sales", number, type=PING)
    sender.stop()
    assert len(told(listener)) <= 2


def test_a_rush_is_counted_in_messages(make_endpoint, connect, database, monkeypatch, patient):
    """A few large batches a second keep receivers as busy as many sends do."""
    for name, value in {"RUSH": 10_000, "APART_SECONDS": 0.0, "RUSH_SECONDS": 600.0}.items():
        monkeypatch.setattr(queue_notifications, name, value)
    sender, listener = make_endpoint(settings=SLOW), connect(database)
    listener.listen(SALES)
    for _ in range(50):
        sender.send_many("Sales", range(100), type=PING)
    sender.stop()
    assert len(told(listener)) <= 5


def test_nothing_is_told_before_the_commit_or_without_one(make_endpoint, handlers, connect, database):
    """It would wake a receiver that finds nothing and then pauses."""
    make_endpoint("Billing", settings=SLOW)
    receiver, listener = make_endpoint(settings=replace(SLOW, immediate_retries=0)), connect(database)
    listener.listen(channel(postgresql(), Address("public", "Billing")))
    seen = []

    @handlers.handle(PING)
    def ping(fails, context):
        context.send("Billing", {}, type=PING)
        seen.append(fails)
        if fails:
            raise RuntimeError

    receiver.send("Sales", True, type=PING)
    receiver.start()
    until(lambda: rows(database, "error"))
    assert heard(listener) == []
    receiver.send("Sales", False, type=PING)
    assert [each.payload for each in told(listener)] == [""]


def test_last_send_is_notified_before_the_stop(make_endpoint, connect, database, patient):
    sender, listener = make_endpoint(settings=SLOW), connect(database)
    listener.listen(SALES)
    sender.send("Sales", 1, type=PING)
    sender.stop()
    assert len(told(listener)) == 1


def test_a_lost_session_is_replaced(make_endpoint, handled, connection, listening):
    receiver, sender = make_endpoint(settings=SLOW), make_endpoint("Shop.Web", settings=SLOW)
    listening(receiver)
    mine = (
        "select pid from pg_stat_activity where datname = current_database() and application_name like 'pgqueue Sales%'"
    )
    connection.all(f"select pg_terminate_backend(pid) from ({mine}) mine")
    sender.send("Sales", "after", type=PING)
    until(lambda: handled == ["after"])
    sender.send("Sales", "heard again", type=PING)
    until(lambda: "heard again" in handled, what="it listens on its new session")


def test_a_server_that_allows_no_idle_sessions_is_no_failure(make_endpoint, handled, connection, listening, caplog):
    """Other sessions reopen when needed; one that listens or notifies mostly waits."""
    database = connection.value("select current_database()")
    connection.run(f"alter database {database} set idle_session_timeout = '100ms'")
    receiver, sender = make_endpoint(settings=SLOW), make_endpoint("Shop.Web", settings=SLOW)
    listening(receiver)
    sender.send("Sales", "first", type=PING)
    until(lambda: handled == ["first"])
    alive = (
        "select count(*) filter (where query ~ 'notif|listen|idle_session') as waiting, count(*) as all"
        " from pg_stat_activity where datname = current_database() and application_name like 'pgqueue %'"
    )
    until(lambda: connection.one(alive) == (2, 2), what="the others are ended")
    sender.send("Sales", "heard", type=PING)
    until(lambda: handled == ["first", "heard"])
    assert "Waking by NOTIFY" not in caplog.text


def test_notifications_are_switched_on_and_off_at_run_time(make_endpoint, handled, listening, connect, database):
    receiver, sender = make_endpoint(settings=replace(SLOW, notify=False)), make_endpoint("Shop.Web", settings=SLOW)
    receiver.start()
    listening(receiver, lambda: receiver.apply(SLOW))
    sender.send("Sales", "on", type=PING)
    until(lambda: handled == ["on"])
    receiver.apply(replace(SLOW, notify=False))  # which triggers another peek
    until(lambda: rests(receiver))
    listener = connect(database)
    listener.listen(SALES)
    sender.send("Sales", "off", type=PING)
    assert told(listener)
    until(lambda: rests(receiver))
    assert len(rows(receiver.dsn, "Sales")) == 1


def test_names_of_any_length_have_their_channel():
    names = {channel(postgresql(), Address(schema, "x" * 55)) for schema in ("a" * 63, "b" * 63)}
    assert len(names) == 2
    assert all(len(name) < 63 for name in names)
