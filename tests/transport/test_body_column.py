"""BodyString on request: as the original creates it, also in schemas with capitals, where the original fails (T6)."""

import threading
from dataclasses import replace

import pytest

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import body_column, postgresql
from tests.transport.conftest import QUICK
from tests.transport.table_catalog import catalog
from tests.waiting import until

READABLE = replace(QUICK, create_message_body_computed_column=True)


def test_the_lock_is_the_originals():
    assert body_column.lock_key('"public"."Sales"') == 3619444225693432866


def test_every_table_of_the_endpoint_gets_it_and_equals_the_recorded_one(make_endpoint, connection, recording, connect):
    make_endpoint("Sales", settings=READABLE)
    recorded = connect(recording)
    for table in ("Sales", "Sales.Delayed", "error"):
        assert catalog(connection, Address("public", table)) == catalog(recorded, Address("public", table))


def test_bodystring_escapes_bytes_as_the_original_does(make_endpoint, connection):
    """Wire sheet 1.6: printable ASCII as it is, octal for everything else, the backslash doubled."""
    endpoint = make_endpoint("Sales", settings=READABLE)
    endpoint.send("Sales", 'é\\\0 "a"'.encode(), type="Shop.Text")
    assert connection.value('select bodystring from "Sales"') == '\\303\\251\\\\\\000 "a"'


def test_in_a_schema_with_capitals(make_endpoint, connection):
    connection.run('create schema "Legacy"')
    make_endpoint("Invoicing", schema="Legacy", settings=replace(READABLE, error_queue="error"))
    for table in ("Invoicing", "Invoicing.Delayed", "error"):
        columns = connection.all(postgresql().queue.columns(), {"schema": "Legacy", "name": table})
        assert [column.type for column in columns if column.name == "bodystring"] == ["text"]


def test_bodystring_is_off_by_default_and_added_once(make_endpoint, connection):
    make_endpoint("Sales").send("Sales", {"n": 1}, type="Shop.Text")
    assert connection.value("select count(*) from pg_attribute where attname = 'bodystring'") == 0
    make_endpoint("Sales", settings=READABLE)
    make_endpoint("Sales", settings=READABLE)
    assert connection.value('select bodystring from "Sales"') == '{"n":1}'


def test_two_installers_at_once(make_endpoint, database, connect, connection):
    """The second waits for the first's lock, finds the column, and succeeds."""
    address = make_endpoint("Sales").queue.address
    first, second = connect(database), connect(database)
    with first.transaction():
        body_column.add(first, postgresql(), address)
        adding = threading.Thread(target=body_column.add, args=[second, postgresql(), address])
        adding.start()
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        until(lambda: connection.value(waiting) == 1, 20)
    adding.join(60)
    assert not adding.is_alive()
    assert connection.value("select count(*) from pg_attribute where attname = 'bodystring'") == 1


@pytest.mark.parametrize("asked", [False, True])
def test_the_check_misses_it_only_where_it_is_asked_for(make_endpoint, asked):
    from pgqueue_admin.transport import checks

    endpoint = make_endpoint("Sales")
    endpoint.settings = READABLE if asked else QUICK
    with endpoint.connect() as connection:
        found = checks.faults(endpoint, connection)
        assert ["bodystring" in fault.said for fault in found] == [True] * 3 * asked
        for fault in found:
            connection.run(fault.cure)
        assert checks.faults(endpoint, connection) == []
