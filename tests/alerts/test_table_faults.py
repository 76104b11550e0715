"""A table that lacks what receivers need is warned of, whichever database holds it."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connections

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.table_faults import TableFaultWatch
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import queue_database as queue_databases
from pgqueue_admin.transport import Endpoint as Engine
from tests import mssql
from tests.alerts.test_kinds import look
from tests.billing import KINDS, Billing
from tests.databases import Databases

KIND = BY_NAME["table_fault"]
NO_INDEX = 'alter table public."Sales" drop constraint "Sales_seq_key"'


@pytest.fixture
def here(console_database: str, connect: Callable[[str], Connection]) -> Iterator[Connection]:
    Engine("Sales", console_database).create_queues()
    yield connect(console_database)
    queue_databases.close()


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest, here: Connection, databases: Databases, settings: Any) -> Iterator[Billing]:
    """A second database, watched as ``billing``."""
    with ExitStack() as kept:
        is_sql_server = request.param in mssql.ONE
        database = request.getfixturevalue("mssql").database() if is_sql_server else databases.clone("empty")
        billing = Billing(kept.enter_context(database))
        Engine("Sales", billing.dsn).create_queues()
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": billing.looked_at(writable=False)}
        yield billing


def without_index(there: Billing) -> None:
    is_sql_server = there.dialect.name == "sqlserver"
    there.run("drop index Index_RowVersion on dbo.Sales" if is_sql_server else NO_INDEX)


def found(watch: TableFaultWatch) -> list[Finding]:
    watch._look_at = 0.0  # the next look is due
    return list(KIND.find(look(faulty_tables=watch.newest())))


def test_of_each_database_its_own_table_with_the_cure(here: Connection, there: Billing) -> None:
    watch = TableFaultWatch()
    assert found(watch) == []
    without_index(there)
    (told,) = found(watch)
    name = f'"{there.orders.schema}"."Sales"'
    assert told.queue == name
    assert re.search("no index on (seq|RowVersion)", told.said.fact)
    here.run(NO_INDEX)
    assert {each.queue for each in found(watch)} == {'"public"."Sales"', name}
    there.run(told.said.meaning.partition("run: ")[2].partition(" Its queue's page")[0])
    assert [each.queue for each in found(watch)] == ['"public"."Sales"']


def test_a_database_that_is_away_keeps_what_was_seen_there(
    here: Connection, there: Billing, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.run(NO_INDEX)
    watch = TableFaultWatch()
    assert len(found(watch)) == 1
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert [each.queue for each in found(watch)] == ['"public"."Sales"']
    assert not KIND.can_tell(look(faulty_tables=TableFaultWatch().newest()))  # of a watch that never saw it


def test_check_looks_at_each_database(here: Connection, there: Billing) -> None:
    without_index(there)
    (told,) = [each for each in run_checks(databases=["queues"]) if each.id == "pgqueue.W005"]
    assert told.msg.startswith("Database billing: ")


def test_the_recorded_tables_of_nservicebus_are_well(recorded_console: str) -> None:
    assert found(TableFaultWatch()) == []
    queue_databases.close()
