"""A recoverability policy as a function (wire sheet 8.1)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.from_failure import dead_message
from pgqueue_admin.transport import After, BehaviourChain, Discard, Exhaust, Immediately, Unrecoverable, standard
from pgqueue_admin.transport.wire import headers as h
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import finished, rows
from tests.transport.tampering import trigger
from tests.waiting import until

PLACE = "Shop.PlaceOrder"
ALONE = replace(QUICK, concurrency=1)


@pytest.fixture
def judged(make_endpoint, handlers):
    """``judged(policy)``: an endpoint whose handler always fails; ``judged.given`` has the policy's arguments."""
    given = []

    def judged(policy, error=None, settings=ALONE, **options):
        def policy_noting(attempted):
            given.append(attempted)
            return policy(attempted)

        @handlers.handle(PLACE)
        def place(order, context):
            raise error or ValueError("no")

        return make_endpoint(pipeline=BehaviourChain(policy=policy_noting), settings=settings, **options)

    judged.given = given
    return judged


def run(endpoint, *orders):
    for order in orders:
        endpoint.send("Sales", order, type=PLACE)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Sales"))


@pytest.mark.parametrize("batch_size", [1, 10])
def test_policy_is_asked_once_for_each_attempt(judged, batch_size):
    endpoint = judged(
        lambda attempted: Immediately() if attempted.failure.attempts < 3 else Exhaust(),
        settings=replace(ALONE, batch_size=batch_size),
    )
    run(endpoint, 1, 2)
    assert [attempted.failure.attempts for attempted in judged.given] == [1, 2, 3, 1, 2, 3]
    assert len(rows(endpoint.dsn, "error")) == 2


def test_policy_may_choose_another_error_queue(judged, make_endpoint):
    make_endpoint("Refused")
    endpoint = judged(lambda attempted: Exhaust("Refused"))
    run(endpoint, 1)
    (row,) = rows(endpoint.dsn, "Refused")
    assert h.parse(row.headers)[h.FAILED_Q] == '"public"."Sales"'
    assert rows(endpoint.dsn, "error") == []


@pytest.fixture
def pinged(handlers):
    """Messages behind the failed one that were handled."""
    bodies = []
    handlers.handle("Shop.Ping")(lambda body, context: bodies.append(body))
    return bodies


def run_with_one_behind(endpoint):
    endpoint.send("Sales", 1, type=PLACE)
    endpoint.send("Sales", 2, type="Shop.Ping")
    run(endpoint)
    finished(endpoint)


@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("named", ["Typo", '"unclosed'])
def test_an_error_queue_that_takes_nothing_leaves_it_to_the_settings(judged, pinged, caplog, named, batch_size):
    """Otherwise the first failure would block all messages behind it."""
    endpoint = judged(lambda attempted: Exhaust(named), settings=replace(ALONE, batch_size=batch_size))
    run_with_one_behind(endpoint)
    assert pinged == [2]
    assert len(rows(endpoint.dsn, "error")) == 1
    assert "so the settings decide" in caplog.text


REFUSALS = {
    "constraint": lambda connection: connection.run('alter table "Refused" add check (body is null)'),
    "trigger": lambda connection: trigger(connection, "Refused", "before insert", "raise 'no room';"),
    "at the commit": lambda connection: trigger(connection, "Refused", "after insert", "raise 'no room';", True),
    "read only": lambda connection: trigger(connection, "Refused", "before insert", "raise read_only_sql_transaction;"),
}


@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_an_error_queue_that_refuses_leaves_it_to_the_settings(
    judged, pinged, make_endpoint, connection, caplog, refusal, batch_size
):
    make_endpoint("Refused")
    endpoint = judged(lambda attempted: Exhaust("Refused"), settings=replace(ALONE, batch_size=batch_size))
    REFUSALS[refusal](connection)
    run_with_one_behind(endpoint)
    assert set(pinged) == {2}  # twice if the commit of its batch was refused
    (row,) = rows(endpoint.dsn, "error")
    assert h.parse(row.headers)[h.EXCEPTION_MESSAGE] == "no"
    assert rows(endpoint.dsn, "Refused") == []
    assert "so the settings decide" in caplog.text


@pytest.mark.parametrize("refusal", ["trigger", "at the commit"])
def test_refusing_error_queue_loses_no_message_in_mode_none(judged, make_endpoint, connection, caplog, refusal):
    make_endpoint("Refused")
    settings = replace(ALONE, transaction_mode="none", immediate_retries=0)
    endpoint = judged(lambda attempted: Exhaust("Refused"), settings=settings)
    REFUSALS[refusal](connection)
    run(endpoint, 1)
    until(lambda: rows(endpoint.dsn, "error"))
    assert "LOST" not in caplog.text


def test_error_queue_without_insert_right_leaves_it_to_the_archive(
    judged, pinged, make_endpoint, connect, engine_database
):
    def bury(connection, message, failure):
        store.archive_failed(connection, dead_message(message, failure, endpoint.dialect))

    connection = connect(engine_database)
    for name in ("Sales", "Refused"):
        make_endpoint(name, engine_database)
    connection.run("create role may_not_refuse; grant usage on schema messages to may_not_refuse")
    for schema in ("public", "messages"):
        connection.run(f"grant all on all tables in schema {schema} to may_not_refuse")
        connection.run(f"grant all on all sequences in schema {schema} to may_not_refuse")
    connection.run('revoke insert on "Refused" from may_not_refuse')
    endpoint = judged(
        lambda attempted: Exhaust("Refused"),
        settings=replace(ALONE, on_exhausted="archive"),
        dsn=f"{engine_database}?options=-c%20role%3Dmay_not_refuse",
        exhausted=bury,
    )
    try:
        run_with_one_behind(endpoint)
    finally:
        endpoint.stop(0)
        connection.run("drop owned by may_not_refuse; drop role may_not_refuse")
    assert pinged == [2]
    assert connection.value("select count(*) from messages.message_archive where state = 'dead'") == 1


@pytest.mark.parametrize("deferred", [False, True], ids=["at the insert", "at the commit"])
def test_error_queue_insert_is_retried_after_a_deadlock(judged, make_endpoint, connection, deferred):
    """The insert itself is sound, so the policy still applies."""
    make_endpoint("Refused")
    endpoint = judged(lambda attempted: Exhaust("Refused"))
    connection.run("create sequence tries")
    later = "if nextval('tries') < 3 then raise 'later' using errcode = '40P01'; end if; return new;"
    trigger(connection, "Refused", "after insert", later, deferred)
    run(endpoint, 1)
    assert len(rows(endpoint.dsn, "Refused")) == 1
    assert rows(endpoint.dsn, "error") == []


def test_later_by_its_own_delay(judged):
    endpoint = judged(lambda attempted: After(timedelta(hours=1)) if not attempted.delayed_retries else Exhaust())
    run(endpoint, 1)
    with endpoint.connect() as connection:
        row = connection.one('select headers, extract(epoch from due - now())::int as left from "Sales.Delayed"')
    assert h.parse(row.headers)[h.RETRIES] == "1"
    assert 3500 < row.left <= 3600


@pytest.mark.parametrize("mode", ["sends_atomic_with_receive", "none"])
def test_dropped_with_a_reason(judged, caplog, mode):
    retries = 0 if mode == "none" else 5
    settings = replace(ALONE, transaction_mode=mode, immediate_retries=retries)
    endpoint = judged(lambda attempted: Discard("nobody wants it any more"), settings=settings)
    run(endpoint, 1)
    until(lambda: "nobody wants it any more" in caplog.text)
    assert rows(endpoint.dsn, "error") == []


def test_unrecoverable_failure_ends_whatever_the_policy_says(judged):
    endpoint = judged(lambda attempted: Immediately(), error=Unrecoverable("bad"))
    run(endpoint, 1)
    until(lambda: rows(endpoint.dsn, "error"))
    assert len(judged.given) == 1


def test_policy_is_asked_for_unreadable_messages(judged, make_endpoint):
    make_endpoint("Strange")
    endpoint = judged(lambda attempted: Exhaust("Strange" if attempted.failure.unreadable else ""))
    endpoint.send("Sales", b"{", type=PLACE)
    run(endpoint, 1)
    until(lambda: rows(endpoint.dsn, "error"))
    assert len(rows(endpoint.dsn, "Strange")) == 1


def test_a_policy_that_fails_leaves_it_to_the_settings(judged, caplog):
    endpoint = judged(lambda attempted: 1 / 0, settings=replace(ALONE, immediate_retries=1))
    run(endpoint, 1)
    until(lambda: rows(endpoint.dsn, "error"))
    assert len(judged.given) == 2
    assert "policy failed" in caplog.text


def test_a_policy_may_leave_what_it_does_not_decide_to_the_settings(judged):
    endpoint = judged(standard, settings=replace(ALONE, immediate_retries=2))
    run(endpoint, 1)
    until(lambda: rows(endpoint.dsn, "error"))
    assert len(judged.given) == 3
