"""Records and business rows on MariaDB, queues on PostgreSQL: the proofs of test_receive for one database (O7)."""

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pymysql
import pytest

from pgqueue_admin.dialects import Connection, dialect_for
from pgqueue_admin.dialects.mysql import connect_options
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.outbox.endpoint_outbox import EndpointOutbox
from pgqueue_admin.outbox.upkeep import OutboxUpkeep
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.receiving.storage_transactions import StorageTransaction
from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.transport.wire import headers as h
from tests.mariadb import MariaDB
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint, charging
from tests.outbox.test_receive import ANOTHER_ID, charges, sold, two_at_once
from tests.outbox.test_script import ORIGINALS_OF_MYSQL
from tests.transport.recording_observer import Spy, rows
from tests.waiting import until

EVERY = [
    (concurrency, isolation)
    for concurrency in ("optimistic", "pessimistic")
    for isolation in ("read_committed", "repeatable_read", "serializable")
]
# As in test_upkeep: destination and number.
PENDING = """insert into Billing_OutboxData (MessageId, PersistenceVersion, Operations, CreatedAt)
    select concat('pending ', seq), '9.0.3', json_array(json_object('MessageId', concat('sent ', seq),
        'Headers', json_object(), 'Body', to_base64(seq), 'Options', json_object('Destination', %s))),
        now() - interval 1 hour from seq_1_to_1000 where seq <= %s"""


@pytest.fixture
def there(mariadb_shop: str) -> Iterator[Any]:
    """A session of MariaDB."""
    with dialect_for(mariadb_shop).connect(mariadb_shop) as session:
        yield session


def records(session: Any) -> list[tuple[bool, str]]:
    found = session.all("select Dispatched + 0, Operations from Billing_OutboxData")
    return [(bool(dispatched), operations) for dispatched, operations in found]


def test_look_for_a_record_locks_out_no_other_copy(make: MakeEndpoint, mariadb_shop: str, there: Any) -> None:
    """Otherwise one copy could wait here for another that waits for it in another database, an undetected deadlock."""
    outbox = make(outbox=Outbox(dsn=mariadb_shop, isolation="serializable", wait=timedelta(seconds=1))).outbox
    assert outbox
    with outbox.connect() as one, outbox.connect() as other:
        copies = [StorageTransaction(each, outbox.finding("a"), outbox.finds_apart) for each in (one, other)]
        one.run(*outbox.storing("a", []))
        copies[0].commit()
        copies[1].rollback()
    assert records(there) == [(False, "[]")]


@pytest.mark.parametrize(("concurrency", "isolation"), EVERY)
def test_each_of_several_copies_has_one_effect(
    make: MakeEndpoint,
    database: str,
    connection: Connection,
    mariadb_shop: str,
    there: Any,
    spy: Spy,
    concurrency: Any,
    isolation: Any,
) -> None:
    """A hundred messages, each delivered three times to four slots at once."""
    billing = make(outbox=Outbox(dsn=mariadb_shop, concurrency=concurrency, isolation=isolation))
    charging(billing, "charges")
    billing.send_many("Billing", range(100), type=CHARGE)
    connection.run(f'{ANOTHER_ID} union all select gen_random_uuid(), headers, body from "Billing" order by 2')
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert charges(there) == list(range(100))
    assert sold(database) == list(range(100))
    assert records(there) == [(True, "[]")] * 100
    assert rows(database, "error") == []
    assert spy.counts["failed"] == 0, "a conflict that the database decides is no failure"


def test_snapshot_is_refused_by_name() -> None:
    """InnoDB has no isolation level of that name."""
    said = "isolation of the outbox is 'snapshot': on mysql it is one of read_committed, repeatable_read, serializable."
    with pytest.raises(SettingsRefused, match=said):
        Endpoint("Billing", "", settings=replace(SETTINGS, outbox=Outbox(dsn="mysql://host/db", isolation="snapshot")))


def test_an_endpoint_whose_queues_are_to_be_there_is_told(mariadb_shop: str) -> None:
    with pytest.raises(LookupError, match="There are no queues on MySQL"):
        Endpoint("Billing", mariadb_shop, settings=SETTINGS).create_queues()


@pytest.mark.parametrize(("concurrency", "runs"), [("optimistic", [7, 7]), ("pessimistic", [7])])
def test_two_copies_at_once(
    make: MakeEndpoint, connection: Connection, mariadb_shop: str, there: Any, spy: Spy, concurrency: Any, runs: Any
) -> None:
    """Optimistic: both run and one is rolled back. Pessimistic: the second waits. A duplicate is no failure."""
    billing = make(outbox=Outbox(dsn=mariadb_shop, concurrency=concurrency))
    assert two_at_once(billing, connection, "charges") == runs
    assert charges(there) == [7]
    assert spy.counts["failed"] == 0


def test_message_waiting_too_long_for_its_record_is_received_again(
    make: MakeEndpoint, database: str, mariadb_shop: str, there: Any, spy: Spy
) -> None:
    """The slot stays free while another session holds the record; no failure is counted. Waits are whole seconds."""
    billing = make(outbox=Outbox(dsn=mariadb_shop, wait=timedelta(seconds=1)))
    charging(billing, "charges")
    billing.send("Billing", 1, type=CHARGE, headers={h.MESSAGE_ID: "one"})
    insert = "insert into Billing_OutboxData (MessageId, Operations, PersistenceVersion) values ('one', '[]', '')"
    with dialect_for(mariadb_shop).connect(mariadb_shop) as holder:
        with suppress(ZeroDivisionError), holder.transaction():
            holder.run(insert)
            billing.send("Billing", 2, type=CHARGE)
            billing.start()
            until(lambda: charges(there) == [2])
            until(lambda: spy.counts["received"] > 2, what="it comes again while somebody holds its record")
            raise ZeroDivisionError
        until(lambda: charges(there) == [1, 2])
    assert (rows(database, "error"), spy.counts["failed"]) == ([], 0)


def test_a_handler_that_ends_its_transaction_by_ddl_fails(
    make: MakeEndpoint, database: str, mariadb_shop: str, there: Any
) -> None:
    """MariaDB's DDL commits implicitly: later statements are rolled back, and nothing is sent."""
    billing = make(outbox=Outbox(dsn=mariadb_shop), immediate_retries=0)

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        context.connection.run("create table extra (number integer)")
        context.connection.run("insert into charges (number) values (%s)", [number])
        context.send("Sales", number, type=CHARGE)

    billing.send("Billing", 1, type=CHARGE)
    billing.start()
    until(lambda: len(rows(database, "error")) == 1)
    assert (charges(there), records(there), sold(database)) == ([], [], [])


def test_upkeep_sends_undispatched_and_deletes_old_records(
    make: MakeEndpoint, database: str, mariadb_shop: str, there: Any
) -> None:
    billing = make(outbox=Outbox(dsn=mariadb_shop))
    there.run(PENDING, ["Sales", 250])
    there.run(
        """insert into Billing_OutboxData (MessageId, Dispatched, DispatchedAt, PersistenceVersion, Operations)
        select seq, 1, utc_timestamp() - interval 8 day, '', '[]' from seq_1_to_5000"""
    )
    assert isinstance(billing.outbox, EndpointOutbox)
    for _ in range(2):
        OutboxUpkeep(billing.outbox, billing.breakers.new("test")).run_once()
    assert sold(database) == list(range(1, 251))
    assert records(there) == [(True, "[]")] * 250


def test_a_caller_sends_with_his_own_commit_and_not_without_it(
    make: MakeEndpoint, database: str, mariadb_shop: str, there: Any
) -> None:
    """Through the caller's own connection, with its own cursor settings."""
    web = make("Web", outbox=Outbox(dsn=mariadb_shop))
    caller = pymysql.connect(**connect_options.arguments(mariadb_shop), cursorclass=pymysql.cursors.DictCursor)
    for number, end in ((1, caller.rollback), (2, caller.commit)):
        with web.transactional_session(caller) as session:
            caller.cursor().execute("insert into charges (number) values (%s)", [number])
            session.send("Sales", number, type=CHARGE)
        session.dispatch()
        assert sold(database) == []
        end()
    session.dispatch()
    assert (charges(there), sold(database)) == ([2], [2])
    caller.close()
    with pytest.raises(TypeError, match=r"a pymysql\.Connection is needed"):
        web.transactional_session(object())


def test_an_endpoint_on_an_originals_table(
    make: MakeEndpoint, connection: Connection, database: str, mariadb_shop: str, there: Any
) -> None:
    """As created by its script: other character sets, and no column with the time of writing."""
    there.run(ORIGINALS_OF_MYSQL.format(table="Billing_OutboxData"))
    billing = make(outbox=Outbox(dsn=mariadb_shop))
    charging(billing, "charges")
    billing.send_many("Billing", range(20), type=CHARGE)
    connection.run(ANOTHER_ID)
    billing.start()
    until(lambda: not rows(database, "Billing"))
    assert charges(there) == sold(database) == list(range(20))
    assert records(there) == [(True, "[]")] * 20
    found = there.all("explain select 1 from Billing_OutboxData where MessageId = 'x'")
    assert found[0].key in ("PRIMARY", None), "one row by its key, or none"


def test_a_server_that_is_killed_and_comes_back_costs_nothing(
    make: MakeEndpoint, database: str, mariadb: MariaDB, mariadb_shop: str, caplog: pytest.LogCaptureFixture
) -> None:
    billing = make(outbox=Outbox(dsn=mariadb_shop))
    charging(billing, "charges")
    billing.send_many("Billing", range(300), type=CHARGE)
    with caplog.at_level(logging.CRITICAL):
        billing.start()
        until(lambda: len(rows(database, "Billing")) < 250)
        mariadb.kill()
        mariadb.start()
        until(lambda: not rows(database, "Billing"))
    with dialect_for(mariadb_shop).connect(mariadb_shop) as session:
        assert charges(session) == list(range(300))
        assert records(session) == [(True, "[]")] * 300
    assert sorted(set(sold(database))) == list(range(300))
    assert rows(database, "error") == []
