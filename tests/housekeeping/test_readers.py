"""Several consoles with separate ledgers on one archive: no console prunes what another has not read."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.alerts.dead_message_cursor import DeadMessageCursor
from pgqueue_admin.alerts.finding import Finding
from pgqueue_admin.alerts.kinds import BY_NAME
from pgqueue_admin.alerts.snapshot import AlertSnapshot
from pgqueue_admin.archive import dead_messages, retention, schema
from pgqueue_admin.archive.retention import SILENT
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import EngineTablesOlder
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import Cursor, HistorySource, database_clock
from pgqueue_admin.models.queue_database import queue_database
from tests.databases import Databases
from tests.history.dump_restore import dumped, restored
from tests.housekeeping.test_pruning import DAY, ended, left, planned, read
from tests.older_schema import set_back

Other = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def database(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture(autouse=True)
def thirty_days(settings: Any) -> None:
    settings.PGQUEUE = {
        **settings.PGQUEUE,
        "ARCHIVE_RETENTION_DAYS": 30,
        "SPARK_MASTER": "local[2]",
        "ENVIRONMENT": "plant 2",
    }


@pytest.fixture
def other(databases: Databases) -> Iterator[Other]:
    """Act as another console: its own database, the same queues."""
    with databases.clone("console") as dsn:
        yield partial(databases.as_django, dsn, ("default",))


def said_long_ago(database: Connection, ago: timedelta) -> None:
    database.run("update messages.history_reader set said_at = said_at - %s", [ago])


def begun(database: Connection) -> None:
    """Its driver knows the archive and has read nothing; its housekeeping has recorded that."""
    sources(database)
    assert tasks.prune_archive() == 0


def test_rows_unread_by_another_console_stay(database: Connection, other: Other) -> None:
    with other():
        begun(database)
    first = ended(database)
    read(planned(database))
    assert tasks.prune_archive() == 0
    with other():
        assert left(database) == [first]
        read(planned(database))
        assert tasks.prune_archive() == 1  # both have read it, and the first has recorded so
    second = ended(database)
    with other():
        read(planned(database))
        assert tasks.prune_archive() == 0
    assert left(database) == [second]
    read(planned(database))
    assert tasks.prune_archive() == 1


@pytest.mark.parametrize("history", ["", "local[2]"])
def test_pruning_waits_for_a_console_that_prunes_nothing(
    database: Connection, other: Other, settings: Any, history: str
) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 0}
    with other():
        begun(database)
    late = ended(database)
    read(planned(database))
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30, "SPARK_MASTER": history}
    assert tasks.prune_archive() == 0
    assert left(database) == [late]


def test_pruning_waits_for_events_unfiled_by_another_console(database: Connection, other: Other) -> None:
    dead = ended(database, result="failed")
    dead_messages.discard(database, [dead], "ana")
    database.run("update messages.message_archive set resolved_at = resolved_at - interval '31 days'")
    everything = database.value("select pg_current_snapshot()::text")
    with other():
        read(planned(database))
        assert tasks.prune_archive() == 0
    read(planned(database))
    HistorySource.objects.update(events_snapshot=everything)
    assert tasks.prune_archive() == 0
    with other():
        HistorySource.objects.update(events_snapshot=everything, events_before=database_clock.now() - DAY)
        assert tasks.prune_archive() == 0
    assert tasks.prune_archive() == 0, "what was done since then it has in no file"
    with other():
        HistorySource.objects.update(events_before=database_clock.now() + DAY)
        assert tasks.prune_archive() == 1


def test_position_noted_on_another_server_holds_pruning_back(database: Connection, other: Other) -> None:
    """A dump brings the consoles' notes along, whose transaction ids mean nothing on this server."""
    with other():
        begun(database)
    ended(database)
    read(planned(database))
    database.run("update messages.history_reader set cluster = 'of yesterday', snapshot = '9999999:9999999:'")
    assert tasks.prune_archive() == 0
    with other():
        read(planned(database))
        assert tasks.prune_archive() == 1


def test_position_noted_of_the_former_table_holds_pruning_back(
    database: Connection, console_database: str, other: Other, settings: Any, tmp_path: Path
) -> None:
    """The archive was restored from a dump: by another server's ids its rows may seem to be read by that console."""
    old = ended(database)
    with other():
        read(planned(database))
        assert tasks.prune_archive() == 1
        assert left(database) == []
    old = ended(database)
    with other():
        read(planned(database))
        planning.plan_batch(database, HistorySource.objects.get())
        settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 0}
        assert tasks.prune_archive() == 0
    restored(database, console_database, dumped(console_database, tmp_path))
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30, "SPARK_MASTER": ""}
    assert tasks.prune_archive() == 0
    assert left(database) == [old]


def test_console_silent_for_a_week_is_not_waited_for_but_warned_of(database: Connection, other: Other) -> None:
    with other():
        begun(database)
    ended(database)
    read(planned(database))
    said_long_ago(database, SILENT - timedelta(minutes=1))
    assert (tasks.prune_archive(), warned()) == (0, [])
    said_long_ago(database, timedelta(minutes=1))
    assert tasks.prune_archive() == 1
    (found,) = warned()
    said = found.said.sentence.replace("\N{NO-BREAK SPACE}", " ")
    assert "A console that keeps history of this archive (plant 2) has been silent for 7 d" in said
    database.run(said[said.index("delete from messages.history_reader") :].partition(";")[0])
    assert warned() == []


def warned() -> list[Finding]:
    now = database_clock.now()
    reading = DeadMessageCursor().read(queue_database(), Cursor.objects.get_or_create(name="alerter")[0])
    assert reading.error == ""
    return list(BY_NAME["history_reader_stale"].find(AlertSnapshot(now=now, watching_since=now, silent=reading.silent)))


def test_engine_tables_of_an_old_version_are_pruned_after_an_upgrade(database: Connection) -> None:
    ended(database)
    read(planned(database))
    set_back(database, 1)
    with pytest.raises(EngineTablesOlder):
        tasks.prune_archive()
    assert schema.install(database) == (schema.VERSION, "updated")
    assert schema.install(database) == (schema.VERSION, "nothing")
    assert tasks.prune_archive() == 1
    assert database.value("select name from messages.history_reader") == "plant 2"


@pytest.fixture
def looking(database: Connection) -> Iterator[Connection]:
    """A session of a role with SELECT on the engine's tables, granted one by one."""
    database.run("create role only_looks_at_deaths; grant usage on schema messages to only_looks_at_deaths")
    database.run("grant select on all tables in schema messages to only_looks_at_deaths")
    database.run("set role only_looks_at_deaths")
    yield database
    database.run("reset role; drop owned by only_looks_at_deaths; drop role only_looks_at_deaths")


def test_role_without_grants_on_readers_is_told_of_none(database: Connection, looking: Connection) -> None:
    """Many roles' grants are older than this table. The statement also reads deaths, which must still be reported."""
    database.run("reset role")
    begun(database)
    said_long_ago(database, SILENT)
    database.run("set role only_looks_at_deaths")
    assert [each.name for each in retention.silent(looking)] == ["plant 2"]
    database.run("reset role; revoke select on messages.history_reader from only_looks_at_deaths")
    database.run("set role only_looks_at_deaths")
    assert retention.silent(looking) == []
