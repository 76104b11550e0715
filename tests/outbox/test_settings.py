"""Which outbox settings an endpoint accepts and which it refuses (O5, O8, O10)."""

import logging
import re
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.mysql.dialect import MySQL
from pgqueue_admin.dialects.oracle.dialect import Oracle
from pgqueue_admin.dialects.outbox_store import Isolation
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.sqlserver.dialect import SQLServer
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.outbox import Outbox
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.settings import SettingsRefused
from tests.outbox.conftest import CHARGE, SETTINGS, MakeEndpoint
from tests.transport.recording_observer import finished, rows
from tests.waiting import PATIENCE, until


@pytest.mark.parametrize(
    ("settings", "outbox", "said"),
    [
        ({"transaction_mode": "sends_atomic_with_receive"}, {}, "Choose receive_only, or leave the outbox out"),
        ({"batch_size": 5}, {}, "each message has a record of its own"),
        ({}, {"isolation": "chaos"}, "isolation of the outbox is 'chaos': on postgresql it is one of read_committed"),
        ({}, {"isolation": "read_uncommitted"}, "isolation of the outbox"),
        ({}, {"concurrency": "both"}, "it must be optimistic or pessimistic"),
        ({}, {"keep": timedelta()}, "keep of the outbox is 0:00:00: it must be more than 0"),
        ({}, {"clean_every": timedelta(-1)}, "clean_every of the outbox"),
        ({}, {"prefix": "a" * 21}, "21 characters, and 20 are allowed"),
        ({}, {"dsn": "oracle://host/db"}, "No dialect for oracle://"),
    ],
)
def test_invalid_outbox_settings_are_refused_by_name(settings: Any, outbox: Any, said: str) -> None:
    with pytest.raises(SettingsRefused, match=said.replace("(", r"\(")):
        Endpoint("Billing", "", settings=replace(SETTINGS, outbox=Outbox(**outbox), **settings))


COLUMNS = {"PostgreSQL": postgresql(), "MySQL, MariaDB": MySQL(), "SQL Server": SQLServer(), "Oracle": Oracle()}


def test_the_pages_table_says_which_isolation_a_database_has() -> None:
    """Oracle has none: no session of it is opened."""
    page = (Path(__file__).parents[2] / "docs/reference/outbox.md").read_text(encoding="utf-8")
    head, _, *lines = re.findall(
        r"^\|.*(?=\|$)", page[page.index("| isolation |") :].partition("\n\n")[0], re.MULTILINE
    )
    table = [[cell.strip() for cell in line.split("|")[1:]] for line in (head, *lines)]
    assert table[0] == ["isolation", *COLUMNS]
    assert [row[0] for row in table[1:]] == [f"`{name}`" for name in get_args(Isolation)]
    for name, *cells in table[1:]:
        has = [name.strip("`") in getattr(dialect, "isolations", ()) for dialect in COLUMNS.values()]
        assert [cell.startswith("yes") for cell in cells] == has, name
        assert all(cell.startswith(("yes", "refused")) for cell in cells)


def test_a_change_while_it_runs_is_refused_as_well(make: MakeEndpoint) -> None:
    billing = make()
    with pytest.raises(SettingsRefused, match="receive_only"):
        billing.apply(replace(billing.settings, transaction_mode="sends_atomic_with_receive"))


def test_outbox_is_switched_on_changed_and_off_at_run_time(
    make: MakeEndpoint, connection: Connection, database: str
) -> None:
    """Records are written from the next message on; another isolation level needs new sessions."""
    billing, seen = make(), list[str]()
    start = replace(SETTINGS, outbox=None)
    billing.apply(start)

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        seen.append(context.connection.value("show transaction_isolation"))

    def handled(number: int) -> int:
        billing.send("Billing", number, type=CHARGE)
        until(lambda: len(seen) == number and not rows(database, "Billing"))
        return int(connection.value('select count(*) from "Billing_OutboxData"'))

    billing.start()
    assert handled(1) == 0
    billing.apply(replace(start, outbox=Outbox(isolation="serializable")))
    assert handled(2) == 1
    billing.apply(replace(start, outbox=Outbox(concurrency="pessimistic")))
    assert handled(3) == 2
    billing.apply(start)
    assert handled(4) == 2
    assert seen == ["read committed", "serializable", "read committed", "read committed"]


def test_without_a_receive_transaction_it_is_off_and_that_is_said(
    make: MakeEndpoint, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    postgresql().outbox_store(Address("public", "Billing_OutboxData")).create(connection)
    billing = make(transaction_mode="none", immediate_retries=0)
    charged = threading.Event()

    @billing.handlers.handle(CHARGE)
    def charge(number: int, context: Any) -> None:
        charged.set()

    billing.send("Billing", 1, type=CHARGE)
    with caplog.at_level(logging.WARNING):
        billing.start()
    assert charged.wait(PATIENCE)
    finished(billing)
    assert "Billing uses no outbox" in caplog.text
    assert connection.value('select count(*) from "Billing_OutboxData"') == 0, "no record is written"


@pytest.mark.parametrize(
    ("endpoint", "prefix", "table"),
    [("Shop.Web", None, "Shop_Web_OutboxData"), ("Billing", "", "OutboxData"), ("A" * 30, "Ours_", "Ours_OutboxData")],
)
def test_its_table_has_the_originals_name(
    make: MakeEndpoint, connection: Connection, endpoint: str, prefix: Any, table: str
) -> None:
    make(endpoint, outbox=Outbox(prefix=prefix))
    assert connection.value("select to_regclass(%s)", [f'public."{table}"']) is not None


def test_two_tables_in_one_schema_have_the_same_indexes(make: MakeEndpoint, connection: Connection) -> None:
    """The original's script creates its indexes for the first table only (outbox sheet 3)."""
    make("Billing").create_queues()
    make("Sales")
    indexed = """select count(*) from pg_indexes where tablename = %s"""
    assert [connection.value(indexed, [f"{name}_OutboxData"]) for name in ("Billing", "Sales")] == [3, 3]


def test_original_table_gets_its_missing_index_once(make: MakeEndpoint, connection: Connection) -> None:
    for name in ("Billing", "Sales"):
        connection.run(
            f"""create table "{name}_OutboxData" ("MessageId" varchar(200) not null primary key,
            "Dispatched" boolean not null default false, "DispatchedAt" timestamp, "PersistenceVersion" varchar(23),
            "Operations" jsonb not null)"""
        )
        connection.run(f'create index if not exists "Index_DispatchedAt" on "{name}_OutboxData" ("DispatchedAt")')
        connection.run(f'create index if not exists "Index_Dispatched" on "{name}_OutboxData" ("Dispatched")')
        make(name)
    indexed = """select count(*) from pg_indexes where tablename = %s"""
    assert [connection.value(indexed, [f"{name}_OutboxData"]) for name in ("Billing", "Sales")] == [3, 3]


def test_a_table_that_is_missing_is_said_with_what_makes_it(make: MakeEndpoint, connection: Connection) -> None:
    from pgqueue_admin.transport.errors import QueueUnfit

    billing = make()
    connection.run('drop table "Billing_OutboxData"')
    with pytest.raises(QueueUnfit, match="Billing_OutboxData"):
        billing.start()
    connection.run('create table "Billing_OutboxData" ("MessageId" text)')
    faults = list(postgresql().outbox_store(Address("public", "Billing_OutboxData")).faults(connection))
    assert [fault.stops for fault in faults][:2] == [True, True]


def test_isolation_that_the_database_disallows_stops_the_start(
    make: MakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only SQL Server has such a setting; tests/dialects/sqlserver tests its store."""
    billing = make(outbox=Outbox(isolation="snapshot"))
    asked = list[str]()

    def faults(session: Any, isolation: str) -> list[TableFault]:
        asked.append(isolation)
        return [TableFault("The database shop allows no isolation snapshot.", "alter database [shop] …", True)]

    assert billing.outbox
    monkeypatch.setattr(billing.outbox, "store", SimpleNamespace(faults=faults))
    with pytest.raises(QueueUnfit, match="allows no isolation snapshot"):
        billing.start()
    assert asked == ["snapshot"]
