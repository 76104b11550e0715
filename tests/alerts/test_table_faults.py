"""A table that lacks what receivers need is warned of, in whichever database it lies."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import run_checks
from django.db import connections

from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.table_faults import TableFaultWatch
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import queue_database as source
from pgqueue_admin.transport import Endpoint as Engine
from tests.alerts.test_kinds import look
from tests.billing import looked_at
from tests.databases import Databases

KIND = BY_NAME["table_fault"]
NO_INDEX = 'alter table "Sales" drop constraint "Sales_seq_key"'


@pytest.fixture
def here(console_database: str, connect: Callable[[str], Connection]) -> Iterator[Connection]:
    Engine("Sales", console_database).create_queues()
    yield connect(console_database)
    source.close()


@pytest.fixture
def there(here: Connection, databases: Databases, connect: Callable[[str], Connection], settings: Any) -> Any:
    """A second database, which is only looked at as ``billing``."""
    with databases.clone("empty") as dsn:
        Engine("Sales", dsn).create_queues()
        settings.PGQUEUE = {**settings.PGQUEUE, "LOOKED_AT": looked_at(dsn, writable=False)}
        yield connect(dsn)


def found(watch: TableFaultWatch) -> list[Finding]:
    watch._look_at = 0.0  # another look is due
    return list(KIND.find(look(faulty_tables=watch.newest())))


def test_of_each_database_its_own_table_with_the_cure(here: Connection, there: Connection) -> None:
    watch = TableFaultWatch()
    assert found(watch) == []
    there.run(NO_INDEX)
    (told,) = found(watch)
    assert told.queue == '"billing:public"."Sales"'
    assert "no index on seq" in told.said.fact
    here.run(NO_INDEX)
    assert {each.queue for each in found(watch)} == {'"public"."Sales"', '"billing:public"."Sales"'}
    here.run(told.said.meaning.partition("run: ")[2].partition(" Its queue's page")[0])
    assert [each.queue for each in found(watch)] == ['"billing:public"."Sales"']


def test_a_database_that_is_away_keeps_what_was_seen_there(
    here: Connection, there: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.run(NO_INDEX)
    watch = TableFaultWatch()
    assert len(found(watch)) == 1
    monkeypatch.setitem(connections["queues"].settings_dict, "PORT", "1")
    assert [each.queue for each in found(watch)] == ['"public"."Sales"']
    assert not KIND.can_tell(look(faulty_tables=TableFaultWatch().newest()))  # of one that never saw it


def test_check_looks_at_each_database(here: Connection, there: Connection) -> None:
    there.run(NO_INDEX)
    (told,) = [each for each in run_checks(databases=["queues"]) if each.id == "pgqueue.W005"]
    assert told.msg.startswith("Database billing: ")


def test_the_recorded_tables_of_nservicebus_are_well(recorded_console: str) -> None:
    assert found(TableFaultWatch()) == []
    source.close()
