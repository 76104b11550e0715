"""Pauses after receives that found nothing."""

import threading

from pgqueue_admin.transport.receiving.pump_state import EmptyReceiveBackoff, ReceiveQuota
from tests.waiting import until


def answered(*took):
    receives = ReceiveQuota(threading.Condition(), 100, unless=lambda: False)
    for each in took:
        receives.start()
        receives.answered(found=each, took=each)
    return receives


def test_at_once_after_the_first_and_then_longer_and_longer():
    """T13 holds: the first empty receive is a race with another receiver."""
    vain = EmptyReceiveBackoff("Sales")
    assert [vain.after(answered(False), 1) for _ in range(9)] == [0, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1, 1]
    assert vain.after(answered(True, False), 1) == 0
    assert vain.after(answered(False), 1) == 0


def test_receive_that_was_never_sent_is_not_counted_as_empty():
    vain = EmptyReceiveBackoff("Sales")
    assert [vain.after(answered(), 1) for _ in range(5)] == [0] * 5


_REFUSE = """
create sequence tries;
create function refuse() returns trigger language plpgsql as
    $$ begin perform nextval('tries'); raise insufficient_privilege; end $$;
create trigger refuse before delete on "Sales" for each row execute function refuse()
"""


def test_a_receive_that_fails_was_not_in_vain(endpoint, connection, caplog):
    """Its error is reported; no warning about a trigger that silently keeps rows."""
    connection.run(_REFUSE)
    endpoint.send("Sales", {}, type="Shop.Order")
    endpoint.start()
    until(lambda: connection.value("select last_value from tries") >= 7, what="receives that fail")
    assert endpoint.breakers.troubles()
    assert "cannot take them" not in caplog.text


def test_empty_receives_are_logged_once_until_they_end(caplog):
    vain = EmptyReceiveBackoff("Sales")
    for _ in range(20):
        vain.after(answered(False), 1)
    assert len(caplog.records) == 1
    vain.after(answered(True), 1)
    for _ in range(20):
        vain.after(answered(False), 1)
    assert len(caplog.records) == 2
