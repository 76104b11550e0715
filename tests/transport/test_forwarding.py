"""A due message that its destination refuses only at the commit ends like one that was refused at once."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.waiting import until

REMIND = "Shop.Remind"


@pytest.fixture
def refuse(connection):
    """``refuse(body)``: Billing raises this PL/pgSQL at the commit of each row it gets."""

    def refuse(body):
        connection.run(f"""create function refuse() returns trigger language plpgsql as $$ {body} $$""")
        connection.run("""create constraint trigger refuses after insert on "Billing" deferrable initially deferred
            for each row execute function refuse()""")

    return refuse


def in_the_error_queue(endpoint):
    """Headers of its only message."""
    until(lambda: rows(endpoint.dsn, "error"))
    finished(endpoint)
    (row,) = rows(endpoint.dsn, "error")
    return h.parse(row.headers)


@pytest.mark.parametrize("mode", ["sends_atomic_with_receive", "receive_only", "none"])
def test_forward_refused_at_the_commit_goes_to_the_error_queue(mode, make_endpoint, refuse, spy):
    make_endpoint("Billing")
    refuse("begin raise 'closed for today'; end")
    endpoint = make_endpoint(settings=replace(QUICK, immediate_retries=0, transaction_mode=mode))
    message_id = endpoint.send("Billing", {"n": 1}, type=REMIND, delay=timedelta())
    endpoint.start()
    headers = in_the_error_queue(endpoint)
    assert headers[h.FAILED_Q] == "Billing"
    assert headers[h.MESSAGE_ID] == message_id
    assert "could not be forwarded to Billing" in headers[h.EXCEPTION_MESSAGE]
    assert "closed for today" in headers[h.EXCEPTION_MESSAGE]
    assert not {h.PROCESSING_ENDPOINT, h.FORWARD_DESTINATION} & set(headers)
    assert rows(endpoint.dsn, "Sales") == rows(endpoint.dsn, "Billing") == []
    assert (spy.counts["failed"], spy.counts["retried"]) == (1, 0)


def test_a_deadlock_at_the_commit_is_nobodys_fault(make_endpoint, connection, refuse):
    """It is retried until it succeeds."""
    make_endpoint("Billing")
    connection.run("create sequence tries")
    refuse("begin if nextval('tries') < 3 then raise 'later' using errcode = '40P01'; end if; return null; end")
    endpoint = make_endpoint()
    endpoint.send("Billing", {"n": 1}, type=REMIND, delay=timedelta())
    endpoint.start()
    until(lambda: rows(endpoint.dsn, "Billing") or rows(endpoint.dsn, "error"))
    finished(endpoint)
    assert [row.body for row in rows(endpoint.dsn, "Billing")] == [b'{"n":1}']
    assert rows(endpoint.dsn, "error") == rows(endpoint.dsn, "Sales") == []


def test_where_the_error_queue_refuses_it_too_the_first_reason_stays(make_endpoint, connection, refuse):
    make_endpoint("Billing")
    refuse("begin raise 'closed for today'; end")
    endpoint = make_endpoint()
    connection.run("create sequence tries")
    connection.run("""create function full_now() returns trigger language plpgsql as $$
        begin if nextval('tries') < 3 then raise 'no room'; end if; return null; end $$""")
    connection.run("""create constraint trigger is_full after insert on error deferrable initially deferred
        for each row execute function full_now()""")
    endpoint.send("Billing", {"n": 1}, type=REMIND, delay=timedelta())
    endpoint.start()
    headers = in_the_error_queue(endpoint)
    assert headers[h.FAILED_Q] == "Billing"
    assert "closed for today" in headers[h.EXCEPTION_MESSAGE]
