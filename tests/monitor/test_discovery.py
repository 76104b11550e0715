"""C2, wire sheet 12.10: queues are found by their columns; names only decide between kinds with the same columns."""

from collections.abc import Callable

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import TableKind
from tests.monitor.tables import fill, found, make


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Sales", TableKind.INPUT),
        ("error", TableKind.ERROR),
        ("Shop.Errors", TableKind.ERROR),
        ("Terror", TableKind.INPUT),
        ("audit", TableKind.AUDIT),
        ("Particular.ServiceControl", TableKind.PLATFORM),
        ("error.log", TableKind.PLATFORM),
        ("Audit.Log", TableKind.PLATFORM),
        ("catalog", TableKind.INPUT),
        ("terror.log", TableKind.INPUT),
        ('<script>"quoted".ünïcode</script>', TableKind.INPUT),
    ],
)
def test_names(connection: Connection, name: str, kind: TableKind) -> None:
    address = make(connection, name)
    (table,) = discovery.find(connection, ["public"])
    assert (table.address, table.kind) == (address, kind)
    assert table.reason


@pytest.mark.parametrize(("header", "kind"), [("FailedQ", TableKind.ERROR), ("ProcessingEnded", TableKind.AUDIT)])
def test_odd_table_name_is_classified_by_its_messages(connection: Connection, header: str, kind: TableKind) -> None:
    address = make(connection, "Elephants")
    fill(connection, address, 3, headers=f"""'{{"NServiceBus.{header}":"x"}}'""")
    assert found(connection, address).kind is kind
    fill(connection, address, 1)
    assert found(connection, address).kind is TableKind.INPUT


def test_a_widened_seq_is_a_queue_with_a_note(connection: Connection) -> None:
    address = make(connection)
    connection.run('alter table "Q" alter column seq type bigint')
    table = found(connection, address)
    assert (table.kind, table.seq_type) == (TableKind.INPUT, "bigint")
    assert "widened" in table.reason


def test_the_sequence_is_found_without_its_name(connection: Connection) -> None:
    address = make(connection)
    connection.run('alter sequence "Q_seq_seq" rename to numbers')
    table = found(connection, address)
    assert table.sequence == Address("public", "numbers")
    assert table.sequence_max == 2**31 - 1
    connection.run("alter sequence numbers owned by none")
    assert found(connection, address).sequence == table.sequence


def test_nearly_a_queue_is_unknown_and_says_why(connection: Connection) -> None:
    connection.run("create table near (id uuid, headers jsonb, body bytea, expires timestamp, seq int)")
    table = found(connection, Address("public", "near"))
    assert table.kind is TableKind.UNKNOWN
    assert table.reason == "has id, headers, body, but headers is jsonb"


def test_the_engines_own_tables(engine_database: str, connect: Callable[..., Connection]) -> None:
    kinds = {t.address.table: t.kind for t in discovery.find(connect(engine_database), ["messages"])}
    assert kinds == {"message": TableKind.LEASE, "message_archive": TableKind.ARCHIVE}


def test_views_partitions_and_other_schemas_are_none(connection: Connection) -> None:
    make(connection)
    connection.run('create view looks as select * from "Q"')
    connection.run('create schema other; create table other."Q" as select * from "Q"')
    assert [table.address for table in discovery.find(connection, ["public"])] == [Address("public", "Q")]


def test_nothing_in_no_schema(connection: Connection) -> None:
    assert discovery.find(connection, []) == []


def test_delayed_table_elsewhere_belongs_to_the_one_queue_of_its_name(connection: Connection) -> None:
    """Each table's schema is resolved by its own name (wire sheet 1.4), so the queue's schema does not apply to it."""
    for schema in ("ops", "spare"):
        connection.run(f"create schema {schema}")
    sales, delayed = Address("ops", "Sales"), Address("public", "Sales.Delayed")
    lonely = Address("spare", "Web.Delayed")
    for address in (sales, Address("public", "Web"), Address("ops", "Web")):
        make(connection, address.table, address.schema)
    for address in (delayed, lonely):
        connection.run(postgresql().delayed.create(table=address))
    tables = {table.address: table for table in discovery.find(connection, ["public", "ops", "spare"])}
    assert (tables[delayed].delayed_of, tables[sales].delayed) == (sales, delayed)
    assert tables[lonely].delayed_of is None  # it could belong to either queue
