"""Tables changed, locked or guarded while an endpoint receives: it is reported, nothing is lost, never a busy loop."""

from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from pgqueue_admin.transport import Endpoint
from tests.transport.conftest import QUICK
from tests.transport.recording_observer import rows
from tests.transport.statements_log import StatementsLog
from tests.transport.tampering import rate, trigger, untrigger
from tests.waiting import until

PING = "Shop.Ping"
ONE = replace(QUICK, concurrency=1)
CALM = 40  # statements a second: the peek delay of these endpoints makes ten


@pytest.fixture
def seen(handlers):
    """Bodies in the order of handling."""
    seen = []
    handlers.handle(PING)(lambda number, context: seen.append(number))
    return seen


@pytest.fixture
def asked(server, connection):
    return StatementsLog(server, connection, "Sales").asked


def send(endpoint, *numbers):
    for number in numbers:
        endpoint.send("Sales", number, type=PING)


@pytest.mark.parametrize(
    "statement",
    [
        'alter table "Sales" alter seq type bigint',  # the repair that wire sheet 12.11 names
        'alter table "Sales" alter headers type varchar, add bodystring text',
        'alter table "Sales" alter expires type timestamptz using null',
    ],
)
def test_a_column_of_another_type_while_receiving(endpoint, seen, connection, statement):
    """Plans prepared in sessions are invalid and are prepared again."""
    endpoint.start()
    for number in range(6):  # one by one: each needs a peek, and repeated peeks are prepared too
        send(endpoint, number)
        until(lambda number=number: number in seen)
    connection.run(statement)
    for number in range(6, 12):
        send(endpoint, number)
        until(lambda number=number: number in seen, 20)


def test_replaced_table_with_other_columns_is_received_from(endpoint, seen, connection):
    """Columns in another order, additional ones, and a wider seq."""
    endpoint.start()
    send(endpoint, *range(10))
    until(lambda: len(seen) == 10)
    connection.run('drop table "Sales"')
    connection.run(
        'create table "Sales" (seq bigserial primary key, body bytea, id uuid unique, more text, headers text,'
        " expires timestamp)"
    )
    send(endpoint, *range(10, 20))
    until(lambda: sorted(seen) == list(range(20)), 20)


def test_a_table_that_is_no_queue_in_its_place(endpoint, seen, connection, asked, caplog):
    endpoint.start()
    connection.run('alter table "Sales" rename to "Sales.aside"; create table "Sales" (n integer)')
    until(lambda: 'column "seq" does not exist' in caplog.text)
    assert rate(asked) < CALM
    connection.run('drop table "Sales"; alter table "Sales.aside" rename to "Sales"')
    send(endpoint, 1)
    until(lambda: seen == [1])


def test_a_queue_that_is_renamed_while_messages_are_in_hand(endpoint, handlers, connection, caplog):
    """Messages in flight are finished; the rest moved with the table and are received when it is back."""
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        seen.append(number)
        if number == 1:
            until(lambda: 2 in seen)

    endpoint.apply(ONE)
    send(endpoint, 1, 2, 3)
    endpoint.start()
    until(lambda: seen == [1])
    mover = endpoint.connect()
    with mover:
        seen.append(2)  # the rename waits for the transaction of the message in flight
        mover.run('alter table "Sales" rename to "Sales.aside"')
        until(lambda: "The table is gone" in caplog.text)
        handled = len(seen)
        assert len(rows(endpoint.dsn, "Sales.aside")) == 4 - handled
        mover.run('alter table "Sales.aside" rename to "Sales"')
    until(lambda: not rows(endpoint.dsn, "Sales"))
    assert sorted(seen) == [1, 2, 2, 3]


def test_rights_that_are_taken_and_given_back(endpoint, seen, connection, database, asked, caplog):
    at = urlsplit(database)
    connection.run("create role lowly login password 'secret'")
    connection.run("grant all on all tables in schema public to lowly")
    lowly = Endpoint(
        "Sales",
        at._replace(netloc=f"lowly:secret@{at.hostname}:{at.port}").geturl(),
        settings=QUICK,
        handlers=endpoint.handlers,
    )
    try:
        lowly.start()
        send(endpoint, 1)
        until(lambda: seen == [1])
        until(lambda: not rows(database, "Sales"))
        connection.run('revoke delete on "Sales" from lowly')
        send(endpoint, 2)
        until(lambda: "Receiving" in caplog.text)
        assert "may not do this" in caplog.text
        assert rate(asked) < CALM
        assert (seen, len(rows(database, "Sales"))) == ([1], 1)
        connection.run('grant delete on "Sales" to lowly')
        until(lambda: seen == [1, 2])
    finally:
        lowly.stop(0)
        connection.run("drop owned by lowly; drop role lowly")


def test_a_full_disk(endpoint, seen, connection, asked, caplog):
    """Any error of a delete: logged once, retried each second, and over once the cause is."""
    trigger(connection, "Sales", "before delete", "raise 'No space left on device' using errcode = '53100';")
    send(endpoint, 1, 2)
    endpoint.start()
    until(lambda: "No space left on device" in caplog.text)
    assert rate(asked) < CALM
    assert (seen, len(rows(endpoint.dsn, "Sales"))) == ([], 2)
    assert caplog.text.count("No space left") < 3
    untrigger(connection, "Sales")
    until(lambda: sorted(seen) == [1, 2])


def test_an_error_queue_that_takes_nothing(endpoint, handlers, connection, asked):
    """The message stays in its queue while others are handled."""
    seen = []

    @handlers.handle(PING)
    def ping(number, context):
        seen.append(number)
        assert number

    trigger(connection, "error", "before insert", "raise 'No space left on device' using errcode = '53100';")
    endpoint.apply(replace(QUICK, immediate_retries=0))
    send(endpoint, 0, *range(1, 10))
    endpoint.start()
    until(lambda: set(seen) == set(range(10)))
    until(lambda: len(rows(endpoint.dsn, "Sales")) == 1)
    assert rate(asked) < CALM
    untrigger(connection, "error")
    until(lambda: len(rows(endpoint.dsn, "error")) == 1)
    assert rows(endpoint.dsn, "Sales") == []


def test_a_commit_that_is_refused(endpoint, seen, connection, asked, caplog):
    """It is not handled again and again: after its retries only moving it away is tried, once a second."""
    refuse = "if old.seq = 1 then raise 'not this one'; end if; return old;"
    trigger(connection, "Sales", "after delete", refuse, deferred=True)
    endpoint.apply(ONE)
    send(endpoint, 1)
    endpoint.start()
    until(lambda: "is tried again each 1 s" in caplog.text, 20)
    assert rate(asked) < CALM
    assert seen == [1] * 6
    untrigger(connection, "Sales")
    until(lambda: len(rows(endpoint.dsn, "error")) == 1, 20)
    assert seen == [1] * 6


def test_a_head_that_somebody_else_has_locked_for_long(endpoint, seen, database, connect, asked):
    """Receives skip it at once, and it causes no extra peeks: they follow the delay only."""
    send(endpoint, *range(5))
    other = connect(database)
    with other.transaction():
        other.run('select from "Sales" where seq = 1 for update')
        endpoint.start()
        until(lambda: sorted(seen) == [1, 2, 3, 4])
        until(lambda: len(rows(database, "Sales")) == 1)
        assert rate(asked) < CALM
    until(lambda: seen[-1] == 0)


def test_all_rows_locked_for_share(endpoint, seen, database, connect, asked):
    """As by a foreign key check or a careful reader."""
    send(endpoint, *range(5))
    other = connect(database)
    with other.transaction():
        other.run('select from "Sales" for share')
        endpoint.start()
        until(lambda: asked())
        assert rate(asked) < CALM
        assert seen == []
    until(lambda: len(seen) == 5, 20)


def test_rows_that_cannot_be_taken_and_nobody_says_so(endpoint, seen, connection, asked, caplog):
    """A trigger or a row policy that keeps them: the peek counts rows that no receive gets."""
    trigger(connection, "Sales", "before delete", "return null;")
    send(endpoint, 1)
    endpoint.start()
    until(lambda: "cannot take them" in caplog.text, 20)
    assert rate(asked) < CALM
    assert caplog.text.count("cannot take them") == 1
    untrigger(connection, "Sales")
    until(lambda: seen == [1], 20)
