"""A handler's writes and sends happen once, however often its message is delivered (O1, O3, O4; outbox sheet 5, 6)."""

import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.wire import headers as h
from tests.outbox.conftest import CHARGE, CHARGED, MakeEndpoint, charging
from tests.transport.recording_observer import Spy, rows
from tests.waiting import until

EVERY = [
    (concurrency, isolation)
    for concurrency in ("optimistic", "pessimistic")
    for isolation in ("read_committed", "repeatable_read", "serializable", "snapshot")
]
ANOTHER_ID = 'insert into "Billing" (id, headers, body) select gen_random_uuid(), headers, body from "Billing"'


def charges(connection: Connection) -> list[int]:
    return [number for (number,) in connection.all("select number from charges order by number")]


def sold(dsn: str) -> list[int]:
    return sorted(int(row.body) for row in rows(dsn, "Sales"))


def records(connection: Connection) -> list[tuple[bool, Any]]:
    found = connection.all('select "Dispatched", "Operations" from "Billing_OutboxData"')
    return [(dispatched, operations) for dispatched, operations in found]


@pytest.mark.parametrize(("concurrency", "isolation"), EVERY)
def test_each_of_several_copies_has_one_effect(
    make: MakeEndpoint, database: str, connection: Connection, spy: Spy, concurrency: Any, isolation: Any
) -> None:
    """A hundred messages, each delivered three times to four slots at once."""
    billing = make(outbox=Outbox(concurrency=concurrency, isolation=isolation))
    charging(billing)
    billing.send_many("Billing", range(100), type=CHARGE)
    connection.run(f'{ANOTHER_ID} union all select gen_random_uuid(), headers, body from "Billing" order by 2')
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert charges(connection) == list(range(100))
    assert sold(database) == list(range(100))
    assert records(connection) == [(True, [])] * 100
    assert rows(database, "error") == []
    assert spy.counts["failed"] == 0, "a conflict that the database decides is no failure"


def two_at_once(endpoint: Endpoint, connection: Connection, table: str = "public.charges") -> list[int]:
    """Deliver two copies of one message; each handler waits up to 2 s for the other."""
    started, both = list[int](), threading.Barrier(2)

    @endpoint.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        started.append(number)
        try:
            both.wait(2)
        except threading.BrokenBarrierError:
            both.reset()
        context.connection.run(f"insert into {table} (number) values (%s)", [number])

    endpoint.send("Billing", 7, type=CHARGE)
    connection.run(ANOTHER_ID)
    endpoint.start()
    until(lambda: not rows(endpoint.dsn, "Billing"))
    return started


def test_optimistic_copies_run_both_and_one_is_undone(
    make: MakeEndpoint, connection: Connection, database: str, spy: Spy
) -> None:
    started = two_at_once(make(), connection)
    assert started == [7, 7]
    assert charges(connection) == [7]
    assert spy.counts["failed"] == 0, "a duplicate is no failure"


def test_a_pessimistic_copy_waits_and_does_not_run(make: MakeEndpoint, connection: Connection) -> None:
    started = two_at_once(make(outbox=Outbox(concurrency="pessimistic")), connection)
    assert started == [7]
    assert charges(connection) == [7]


def test_message_waiting_too_long_for_its_record_is_received_again(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, spy: Spy
) -> None:
    """Another session holds the record and does not end: no slot is blocked, and no failure is counted."""
    billing = make(outbox=Outbox(wait=timedelta(milliseconds=50)))
    charging(billing)
    billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    holder = connect(database)
    insert = 'insert into "Billing_OutboxData" ("MessageId", "Operations") values (\'one\', \'[]\')'
    with suppress(ZeroDivisionError), holder.transaction():
        holder.run(insert)
        billing.send("Billing", 2, type=CHARGE)
        billing.start()
        until(lambda: charges(connection) == [2])
        until(lambda: spy.counts["received"] > 2, what="it comes again while somebody holds its record")
        raise ZeroDivisionError
    until(lambda: charges(connection) == [1, 2])
    assert (rows(database, "error"), spy.counts["failed"]) == ([], 0)


def test_a_look_that_waits_for_a_lock_is_no_failure_of_the_message(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, spy: Spy
) -> None:
    """As on SQL Server, where readers wait for a writer of the record."""
    connection.run(f"alter database {database.rpartition('/')[2]} set lock_timeout = '50ms'")
    billing = make()
    charging(billing)
    billing.send("Billing", 1, type=CHARGE)
    holder = connect(database)
    with holder.transaction():
        holder.run('lock table "Billing_OutboxData" in access exclusive mode')
        billing.start()
        until(lambda: spy.counts["received"] > 3, what="it comes again while somebody holds the table")
    until(lambda: charges(connection) == [1])
    assert (rows(database, "error"), spy.counts["failed"]) == ([], 0)


def test_handlers_keep_their_own_lock_timeout(make: MakeEndpoint, connection: Connection) -> None:
    """The lock timeout of the record's insert does not remain in their transaction."""
    billing, said = make(outbox=Outbox(concurrency="pessimistic", wait=timedelta(seconds=3))), list[str]()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        said.append(context.connection.value("show lock_timeout"))

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(records(connection)) == 1)
    assert said == ["0"]


def test_a_failing_handler_leaves_no_record(
    make: MakeEndpoint, connection: Connection, database: str, spy: Spy
) -> None:
    billing = make()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run("insert into public.charges (number) values (%s)", [number])
        context.send("Sales", number, type=CHARGED)
        raise ValueError("declined")

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert (charges(connection), sold(database), records(connection)) == ([], [], [])
    assert spy.counts["failed"] == 3


def test_handlers_deferred_key_violation_is_a_failure(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """It is not a duplicate, which would be received again for ever."""
    connection.run("alter table charges add unique (number) deferrable initially deferred")
    connection.run("insert into charges (number) values (1)")
    billing = make()
    charging(billing)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert (charges(connection), records(connection)) == ([1], [])


def test_a_duplicate_sends_what_was_left_unsent_without_its_handler(
    make: MakeEndpoint, connection: Connection, database: str, spy: Spy
) -> None:
    """A record that an endpoint of the original left between its commit and its dispatch."""
    billing = make()
    billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    connection.run(
        """insert into "Billing_OutboxData" ("MessageId", "PersistenceVersion", "Operations") values ('one', '9.0.3.0',
        '[{"MessageId": "two", "Headers": {"NServiceBus.EnclosedMessageTypes": "Shop.CardCharged"}, "Body": "MQ==",
           "Options": {"Destination": "Sales"}}]')"""
    )
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert sold(database) == [1]
    (row,) = rows(database, "Sales")
    assert h.parse(row.headers)[h.MESSAGE_ID] == "two"
    assert records(connection) == [(True, [])]
    assert spy.counts["duplicate"] == 1


def test_how_long_a_record_is_kept_does_not_slide(make: MakeEndpoint, connection: Connection, database: str) -> None:
    billing = make()
    connection.run(
        """insert into "Billing_OutboxData" ("MessageId", "Dispatched", "DispatchedAt", "Operations")
        values ('one', true, '2026-01-01', '[]')"""
    )
    billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert str(connection.value('select "DispatchedAt" from "Billing_OutboxData"')) == "2026-01-01 00:00:00"


def test_a_destination_that_is_gone_loses_nothing(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """The effect is committed; the sends wait in the record until the queue exists."""
    billing = make(outbox=Outbox(relay_after=timedelta(milliseconds=100)), immediate_retries=0)
    charging(billing)
    connection.run('alter table "Sales" rename to "Gone"')
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert charges(connection) == [1]
    connection.run('alter table "Gone" rename to "Sales"')
    until(lambda: sold(database) == [1])
    until(lambda: records(connection) == [(True, [])])


def test_a_confirmation_that_was_left_unsent_goes_as_well(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """The confirmation to the platform that retried the message; like the original's, it has no id in its headers."""
    billing = make(outbox=Outbox(relay_after=timedelta(milliseconds=100)), immediate_retries=0)
    charging(billing)
    retried: h.Headers = {h.RETRY_UNIQUE_MESSAGE_ID: "one", h.RETRY_ACKNOWLEDGEMENT_QUEUE: "Platform"}
    billing.send("Billing", 1, type=CHARGE, headers=retried)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    connection.run('create table "Platform" (like "Sales" including all)')
    until(lambda: len(rows(database, "Platform")) == 1)
    until(lambda: records(connection) == [(True, [])])
    assert h.parse(rows(database, "Platform")[0].headers)[h.RETRY_UNIQUE_MESSAGE_ID] == "one"


def test_delayed_sends_and_times_to_be_received_come_through(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    billing = make()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.send("Sales", number, type=CHARGED, ttbr=timedelta(minutes=1))
        context.send("Sales", number, type=CHARGED, delay=timedelta(hours=1))

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert connection.value('select expires is not null from "Sales"')
    assert connection.value('select count(*) from "Billing.Delayed"') == 1


def test_an_outbox_in_another_database(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, engine_database: str
) -> None:
    """O7: records and business rows in another database than the queues."""
    connect(engine_database).run("create table charges (number integer)")
    billing = make(outbox=Outbox(dsn=engine_database))
    charging(billing)
    billing.send_many("Billing", range(20), type=CHARGE)
    connection.run(ANOTHER_ID)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    there = connect(engine_database)
    assert charges(there) == list(range(20))
    assert sold(database) == list(range(20))
    assert records(there) == [(True, [])] * 20
    assert connection.value("select to_regclass('\"Billing_OutboxData\"')") is None


@pytest.mark.parametrize(("is_elsewhere", "said"), [(True, "on"), (False, "off")])
def test_elsewhere_a_record_is_on_disk_before_its_message_is_gone(
    make: MakeEndpoint,
    connection: Connection,
    connect: Any,
    database: str,
    engine_database: str,
    is_elsewhere: bool,
    said: str,
) -> None:
    """Whatever that database's setting: a crash would lose the effect after its message was removed."""
    there, seen = (engine_database if is_elsewhere else database), list[str]()
    session = connect(there)
    session.run(f"alter database {there.rpartition('/')[2]} set synchronous_commit = off")
    billing = make(outbox=Outbox(dsn=there if is_elsewhere else "", concurrency="pessimistic"))

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        seen.append(context.connection.value("show synchronous_commit"))

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert seen == ["on" if is_elsewhere else "off"]


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_elsewhere_each_send_goes_once_however_strict_the_outbox_is(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, engine_database: str, concurrency: Any
) -> None:
    """Sends are committed before their mark there; a mark refused by serializable would send them again."""
    connect(engine_database).run("create table charges (number integer)")
    outbox = Outbox(dsn=engine_database, concurrency=concurrency, isolation="serializable")
    billing = make(outbox=outbox, concurrency=8)
    charging(billing)
    billing.send_many("Billing", range(200), type=CHARGE)
    connection.run(f'{ANOTHER_ID} union all select gen_random_uuid(), headers, body from "Billing" order by 2')
    billing.start()
    until(lambda: not rows(database, "Billing"))
    there = connect(engine_database)
    assert charges(there) == sold(database) == list(range(200))
    assert records(there) == [(True, [])] * 200
    assert rows(database, "error") == []
