"""Foreign changes to an outbox: nothing is lost, sent twice or left behind (O1, O3, O9)."""

import threading
from dataclasses import replace
from datetime import timedelta
from itertools import cycle
from typing import Any
from urllib.parse import quote

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.wire import headers as h
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.outbox.conftest import CHARGE, CHARGED, SETTINGS, MakeEndpoint, charging
from tests.outbox.test_receive import ANOTHER_ID, charges, records, sold
from tests.outbox.test_upkeep import PENDING, upkeep_of
from tests.transport.recording_observer import Spy, insert, rows
from tests.waiting import until

DROPS = """create function drops() returns trigger language plpgsql as 'begin return null; end';
create trigger drops before {} on "Billing_OutboxData" for each row execute function drops()"""


@pytest.mark.parametrize(
    ("concurrency", "act"), [("optimistic", "insert"), ("pessimistic", "insert"), ("pessimistic", "update")]
)
def test_a_trigger_that_drops_records_loses_no_sends(
    make: MakeEndpoint, connection: Connection, database: str, concurrency: Any, act: str
) -> None:
    """Without its record, nothing of the message is committed."""
    billing = make(outbox=Outbox(concurrency=concurrency))
    charging(billing)
    for statement in DROPS.format(act).split(";\n"):
        connection.run(statement)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert (charges(connection), sold(database), records(connection)) == ([], [], [])


def test_a_key_of_some_records_only_is_none(make: MakeEndpoint, connection: Connection) -> None:
    billing = make()
    connection.run('alter table "Billing_OutboxData" drop constraint "Billing_OutboxData_pkey"')
    connection.run('create unique index on "Billing_OutboxData" ("MessageId") where not "Dispatched"')
    with pytest.raises(QueueUnfit, match="no unique key"):
        billing.start()


BAD = """insert into "Billing_OutboxData" ("MessageId", "Operations", "CreatedAt") values (%s, jsonb_build_array(
    jsonb_build_object('MessageId', 'bad', 'Headers', '{}'::jsonb, 'Body', 'MQ==', 'Options',
    jsonb_build_object('Destination', 'Sales')) || %s::text::jsonb), now() - interval '2 hours')"""


@pytest.mark.parametrize(
    "odd",
    [
        '{"Options": {"Destination": "Sales", "DelayDeliveryFor": "10675199.02:48:05.4775807"}}',
        '{"Options": {"Destination": "Sales", "DeliverAt": "0000-00-00"}}',
        '{"Options": {"Destination": "Sales", "TimeToBeReceived": "99999999.00:00:00"}}',
        '{"Options": {"Destination": 5}}',
        '{"Options": null}',
        '{"Headers": null}',
        '{"Headers": {"a": 5}}',
        '{"Headers": {"a": {"b": null}}}',
        '{"Headers": {"NServiceBus.EnclosedMessageTypes": 5}, "Options": {"EventType": "A, B"}}',
        '{"MessageId": 5}',
        '{"MessageId": null}',
        '{"MessageId": {}}',
        '{"MessageId": []}',
        '{"Body": 5}',
    ],
)
def test_a_record_of_anything_keeps_nobody_back(
    make: MakeEndpoint, connection: Connection, database: str, odd: str
) -> None:
    billing = make()
    connection.run(BAD, ["odd", odd])
    connection.run(PENDING, ["Sales", 3])
    upkeep_of(billing).run_once()
    assert {1, 2, 3} <= {int(row.body) for row in rows(database, "Sales") if row.body}
    upkeep_of(billing).run_once()
    for row in rows(database, "Sales"):
        h.parse(row.headers)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ('{"Options": {}}', "neither a Destination nor an EventType"),
        ('{"Options": {"EventType": ""}}', "neither a Destination nor an EventType"),
        ('{"MessageId": null}', "no MessageId"),
        ('{"MessageId": "", "Headers": {"NServiceBus.MessageId": ""}}', "no MessageId"),
        ('{"Body": []}', "The Body of a message in it is no text"),
        ('{"Body": "MQ"}', "Incorrect padding"),
        ('{"Options": {"Destination": "Sales", "DeliverAt": "soon"}}', "A delay is 'soon'"),
    ],
)
@pytest.mark.parametrize("by", ["relay", "duplicate"])
def test_operation_without_a_valid_destination_waits_and_is_logged(
    make: MakeEndpoint, connection: Connection, database: str, caplog: Any, by: str, odd: str, said: str
) -> None:
    """The original's dispatch raises an error too. Ours had marked the record as sent, though nothing was sent."""
    billing = make(immediate_retries=0, outbox=Outbox(relay_after=timedelta(hours=1)))
    about = '{"Headers": {"NServiceBus.EnclosedMessageTypes": "Shop.CardCharged, Shop"}}'
    connection.run(BAD, ["odd", about])
    connection.run('update "Billing_OutboxData" set "Operations" = jsonb_build_array("Operations"->0 || %s)', [odd])
    if by == "relay":
        upkeep_of(billing).run_once()
    else:
        billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "odd"})
        billing.start()
        until(lambda: len(rows(database, "error")) == 1)
    assert [dispatched for dispatched, _ in records(connection)] == [False]
    assert sold(database) == []
    assert said in caplog.text


@pytest.mark.parametrize(
    ("odd", "came"),
    [
        ('{"Body": " M\\nQ= =\\r\\n"}', "expires is null"),
        ('{"Options": {"Destination": "Sales", "TimeToBeReceived": "10675199.02:48:05.4775807"}}', "expires is null"),
        ('{"Options": {"Destination": "Sales", "Custom": "x"}}', "expires is null"),
        ('{"Headers": {"NServiceBus.MessageId": null}}', 'headers = \'{"NServiceBus.MessageId":"bad"}\''),
    ],
)
def test_operations_as_the_original_writes_them_are_sent(
    make: MakeEndpoint, connection: Connection, database: str, odd: str, came: str
) -> None:
    """Base64 as PostgreSQL and MariaDB write it, a time that never ends, an option of another transport."""
    billing = make()
    connection.run(BAD, ["odd", odd])
    upkeep_of(billing).run_once()
    assert sold(database) == [1]
    assert connection.value(f'select {came} from "Sales"')


def test_of_two_delays_the_instant_counts(make: MakeEndpoint, connection: Connection) -> None:
    """As in the original's dispatcher; its own tests have a record with both."""
    billing = make()
    both = '{"Destination": "Sales", "DelayDeliveryFor": "00:00:10", "DeliverAt": "2999-01-02 03:04:05:000006 Z"}'
    connection.run(BAD, ["odd", f'{{"Options": {both}}}'])
    upkeep_of(billing).run_once()
    assert (
        str(connection.value("select due at time zone 'utc' from \"Billing.Delayed\"")) == "2999-01-02 03:04:05.000006"
    )


def test_a_duplicate_of_what_sends_nothing_marks_its_record(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """Its process died between commit and mark. Without a relay only the duplicate can mark it; clean-up keeps it."""
    billing = make(outbox=Outbox(relay_after=None))
    connection.run('insert into "Billing_OutboxData" ("MessageId", "Operations") values (\'one\', \'[]\')')
    billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert records(connection) == [(True, [])]


@pytest.mark.parametrize(
    "left", ["set default_transaction_read_only = on", "set role nobody_here", "set statement_timeout = '1ms'"]
)
def test_session_state_left_by_a_handler_fails_no_other_message(
    make: MakeEndpoint, connection: Connection, database: str, left: str
) -> None:
    """A storage session is reused for the next message; a message that it fails is retried in a new one."""
    billing = make(concurrency=1, immediate_retries=1)
    connection.run("do $$ begin create role nobody_here; exception when others then null; end $$")

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run("insert into public.charges (number) select %s from pg_sleep(0.01)", [number])
        if number == 0:
            context.connection.run(left.replace("set ", "set session "))

    billing.send_many("Billing", range(4), type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert [row for row in rows(database, "error")][1:] == []
    assert {1, 2, 3} <= set(charges(connection))


def test_a_lost_storage_session_is_of_no_later_message(
    make: MakeEndpoint, connection: Connection, database: str, spy: Spy
) -> None:
    """A forwarded message needs no storage session; one without a destination goes to the error queue."""
    billing = make(concurrency=1)
    expired = threading.Event()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        assert expired.wait(30)
        context.connection.run("select pg_terminate_backend(pg_backend_pid())")

    billing.send("Billing", 1, type=CHARGE, ttbr=timedelta(seconds=1))
    billing.start()
    until(lambda: spy.counts["received"] == 1)
    billing.send("Billing", 2, type=CHARGE, headers={h.FORWARD_DESTINATION: "Nowhere"})
    threading.Event().wait(1.5)
    expired.set()
    until(lambda: len(rows(database, "error")) == 1)
    assert spy.counts["expired"] == 1


def test_however_long_a_second_copy_may_wait(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """Longer than the database's limit."""
    billing = make(outbox=Outbox(wait=timedelta(days=100)))
    charging(billing)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert (charges(connection), rows(database, "error")) == ([1], [])


def test_endpoint_without_its_former_outbox_closes_the_sessions(
    make: MakeEndpoint, connection: Connection, database: str, spy: Spy
) -> None:
    billing = make(concurrency=1)
    charging(billing)
    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: spy.counts["handled"] == 1)
    mine = "application_name = 'pgqueue Billing' and datname = current_database()"
    storage = f"select count(*) from pg_stat_activity where {mine}"
    before = connection.value(storage)
    billing.apply(replace(SETTINGS, concurrency=1, outbox=None))
    billing.send("Billing", 2, type=CHARGE)
    until(lambda: spy.counts["handled"] == 2)
    until(lambda: charges(connection) == [1, 2])
    until(
        lambda: connection.value(storage) <= before, what="a session of receive_only's sends came, the storage's went"
    )


def test_an_answer_whose_mark_failed_still_answers(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """The reply is received again as a duplicate; the waiting caller still gets it."""
    from pgqueue_admin.transport import Endpoint, Handlers

    billing = make()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.reply(number, type=CHARGED)

    asking = Endpoint(
        "Asking", database, settings=replace(SETTINGS, outbox=Outbox()), handlers=Handlers(), instance="a"
    )
    asking.create_queues()
    connection.run("create sequence once")
    connection.run("""create function fails_once() returns trigger language plpgsql as $$
        begin if nextval('public.once') = 1 then raise sqlstate '40001'; end if; return new; end $$""")
    connection.run(
        'create trigger fails_once before update on "Asking_OutboxData" for each row execute function fails_once()'
    )
    billing.start()
    asking.start()
    try:
        assert asking.ask("Billing", 7, type=CHARGE).reply(timeout=20).body == 7
    finally:
        asking.stop(0)


@pytest.mark.parametrize("message_id", ["x" * 201, "it's", "%s", '"', "\u2028", "", "a\0b", "x" * 200, "ß" * 200])
def test_message_with_any_id_is_handled_or_goes_to_the_error_queue(
    make: MakeEndpoint, connection: Connection, database: str, message_id: str
) -> None:
    billing = make()
    charging(billing)
    about = {h.ENCLOSED_MESSAGE_TYPES: CHARGE, h.CONTENT_TYPE: "application/json"}
    for number in (1, 2):
        insert(database, "Billing", h.dump({**about, h.MESSAGE_ID: message_id}), str(number).encode())
    billing.send("Billing", 3, type=CHARGE)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    done, dead = charges(connection), len(rows(database, "error"))
    assert 3 in done
    if message_id == "":
        assert (done, dead) == ([1, 2, 3], 0)
    elif len(message_id) > 200 or "\0" in message_id:
        assert (done, dead) == ([3], 2)
    else:
        assert len(done) == 2
        assert dead == 0
    assert sold(database) == done


def test_a_delayed_retry_and_the_error_queue_need_no_record(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    billing, attempts = make(immediate_retries=0, delayed_retries=1, delayed_retry_step=0.5), list[int]()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        attempts.append(number)
        context.connection.run("insert into public.charges (number) values (%s)", [number])
        context.send("Sales", number, type=CHARGED)
        if number == 2 or len(attempts) == 1:
            raise ValueError

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: charges(connection) == [1])
    until(lambda: sold(database) == [1])
    billing.send("Billing", 2, type=CHARGE)
    until(lambda: len(rows(database, "error")) == 1)
    assert charges(connection) == [1]
    assert attempts == [1, 1, 2, 2]


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
@pytest.mark.parametrize("table", ["Billing_OutboxData", "Sales"])
def test_an_answer_to_a_commit_that_never_comes(
    make: MakeEndpoint, connection: Connection, connect: Any, database: str, concurrency: Any, table: str
) -> None:
    """The record's commit, or the sends' at the end of the message: it is durable, and the session is terminated."""
    billing = make(outbox=Outbox(concurrency=concurrency, relay_after=None), concurrency=1)
    charging(billing)
    with nobody_stands_by(connect(database)):
        who_inserts_waits(connection, f'"{table}"')
        billing.send("Billing", 1, type=CHARGE)
        billing.start()
        until(lambda: connection.one(WAITS))
        end_who_waits(connection)
        until(lambda: connection.one(WAITS) is None)
    until(lambda: not rows(database, "Billing"))
    assert (charges(connection), sold(database), rows(database, "error")) == ([1], [1], [])
    assert records(connection) == [(True, [])]


def test_a_role_that_waits_for_less_than_its_outbox(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """The role's statement_timeout ends the wait of a second copy; that is no failure of the message either."""
    hasty = f"{database}?options={quote('-c statement_timeout=200ms')}"
    billing = make(outbox=Outbox(dsn=hasty, concurrency="pessimistic"))

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        threading.Event().wait(2)  # longer than the second copy may wait
        context.connection.run("insert into public.charges (number) values (%s)", [number])

    for _ in range(2):
        billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert (charges(connection), rows(database, "error")) == ([1], [])


@pytest.mark.parametrize("ends", ["commit", "rollback", "commit; begin", "rollback; begin", "close"])
def test_a_handler_that_ends_its_transaction_sends_nothing(
    make: MakeEndpoint, connection: Connection, database: str, ends: str
) -> None:
    billing = make(immediate_retries=0, concurrency=1)

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.send("Sales", number, type=CHARGED)
        if number == 1 and ends == "close":
            context.connection.raw.close()
        elif number == 1:
            for statement in ends.split("; "):
                context.connection.run(statement)

    billing.send("Billing", 1, type=CHARGE)
    billing.send("Billing", 2, type=CHARGE)
    billing.start()
    until(lambda: sold(database) == [2])
    until(lambda: len(rows(database, "error")) == 1)
    assert records(connection) == [(True, [])]


def test_an_outbox_that_changes_while_messages_are_in_flight(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    billing = make()
    charging(billing)
    billing.send_many("Billing", range(300), type=CHARGE)
    connection.run(ANOTHER_ID)
    billing.start()
    outboxes = cycle([Outbox(concurrency="pessimistic"), Outbox(isolation="serializable"), Outbox()])
    while rows(database, "Billing"):
        billing.apply(replace(SETTINGS, outbox=next(outboxes)))
    assert charges(connection) == sold(database) == list(range(300))
    assert rows(database, "error") == []
    billing.stop()
    until(lambda: not any("Billing" in each.name for each in threading.enumerate()))
    mine = "application_name like 'pgqueue Billing%' and datname = current_database()"
    until(lambda: connection.value(f"select count(*) from pg_stat_activity where {mine}") == 0)


def test_a_conflict_that_never_ends_is_a_failure(make: MakeEndpoint, connection: Connection, database: str) -> None:
    """Such as a trigger that reports a stale row: the message would be received again for ever."""
    billing = make()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run("do $$ begin raise sqlstate '40001'; end $$")

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert records(connection) == []
