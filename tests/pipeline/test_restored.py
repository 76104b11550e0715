"""An archive that is another table than the one that was read: restored from a dump of some server, or made anew."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects import Connection
from pgqueue_admin.embedded import binaries
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.pipeline.plan import deciding, planning
from pgqueue_admin.pipeline.sources.tables import sources
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import HistoryBatch, HistorySource
from tests.pipeline.events import DAY, buried
from tests.pipeline.failovers import PAGE, has_all_of, may_see_timelines, rests
from tests.pipeline.followers import there
from tests.pipeline.tables import died, read

Connect = Callable[[str], Any]
ANOTHER = "another table than the one that was read"
NOTHING_NEW = {"cluster": ""}  # as the note says
ALL_NEW = {"cluster": "", "snapshot": "", "ahead": "", "seq_done": 0}  # as docs/history.md says, with
NEW = "update messages.message_archive set xid = pg_current_xact_id()"


def said(source: HistorySource, how: dict[str, Any]) -> HistorySource:
    HistorySource.objects.filter(pk=source.pk).update(**how)
    source.refresh_from_db()
    return source


def run(program: str, dsn: str, *options: str | Path) -> None:
    command = [binaries.postgresql() / program, "-d", dsn, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def dumped(dsn: str, folder: Path) -> Path:
    run("pg_dump", dsn, "-t", "messages.message_archive", "-f", folder / "archive.sql")
    return folder / "archive.sql"


def restored(database: Connection, dsn: str, dump: Path) -> None:
    """In place of the one that is there."""
    database.run("drop table messages.message_archive cascade")
    run("psql", dsn, "-qX", "-v", "ON_ERROR_STOP=1", "-f", dump)


def test_from_a_dump_of_this_server(database: Any, console_database: str, tmp_path: Path) -> None:
    """Its transaction ids say what they said, once somebody has said so."""
    (archive,) = sources(database)
    died(database, 2)
    assert read(database, archive) == [1, 2]
    died(database)
    restored(database, console_database, dumped(console_database, tmp_path))
    rests(database, archive, ANOTHER)
    died(database)
    rests(database, archive, "set cluster = '' where \"table\" = 'messages.message_archive'")
    assert read(database, said(archive, NOTHING_NEW)) == [3, 4]
    died(database)
    assert read(database, archive) == [5]


def test_from_a_dump_of_another_server(
    restarted: PostgreSQL, database: Any, console_database: str, connect: Connect, settings: Any, tmp_path: Path
) -> None:
    """By their ids its rows were read long ago, and none was: nothing goes before it is in history."""
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_DAYS": 1, "SPARK_MASTER": "local[2]"}
    other = connect(restarted.dsn("postgres"))
    schema.install(other)
    for _ in range(2):
        buried(other, result="success", died_at=clock.now() - 40 * DAY)
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    here, there = (each.value("select pg_current_xact_id()::text::int8") for each in (database, other))
    for _ in range(max(0, there - here)):
        database.run("select pg_current_xact_id()")
    assert read(database, archive) == []
    restored(database, console_database, dumped(restarted.dsn("postgres"), tmp_path))
    assert tasks.prune_archive() == 0
    rests(database, archive, ANOTHER)
    assert f"{NEW};" in PAGE.read_text()
    database.run(NEW)
    assert read(database, said(archive, ALL_NEW)) == [1, 2]


def test_made_anew(database: Any, console_database: str, connect: Connect) -> None:
    (archive,) = sources(database)
    died(database, 2)
    assert read(database, archive) == [1, 2]
    database.run("drop schema messages cascade; drop type public.message_status cascade")
    anew = connect(console_database)  # the other session knows the type that is gone
    schema.install(anew)
    died(anew)
    rests(anew, archive, ANOTHER)
    assert read(anew, said(archive, NOTHING_NEW)) == [1]


def test_while_a_batch_of_it_was_read(database: Any, console_database: str, tmp_path: Path) -> None:
    (archive,) = sources(database)
    died(database, 2)
    batch = planning.plan(database, archive)
    assert batch is not None
    assert deciding.why_not_of_it(database, batch, is_short=False) == ""
    restored(database, console_database, dumped(console_database, tmp_path))
    assert ANOTHER in deciding.why_not_of_it(database, batch, is_short=False)
    rests(database, archive, ANOTHER)
    assert read(database, said(archive, NOTHING_NEW)) == [1, 2]
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


def test_behind_a_failover_that_lost_nothing(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect, tmp_path: Path
) -> None:
    """The server's log says so of the server, and nothing of the table that came after."""
    (archive,) = sources(database)
    may_see_timelines(database)
    died(database)
    assert read(database, archive) == [1]
    promoted = connect(there(follower, console_database))
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    dsn = there(follower, console_database)
    restored(promoted, dsn, dumped(dsn, tmp_path))
    rests(promoted, archive, ANOTHER)
    assert read(promoted, said(archive, NOTHING_NEW)) == []


def test_a_table_that_was_only_rewritten_is_the_same(database: Any) -> None:
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    database.run("vacuum full messages.message_archive")
    died(database)
    assert read(database, archive) == [2]


def test_a_ledger_that_noted_no_table_goes_on(database: Any) -> None:
    """One of the version before."""
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    known = HistorySource.objects.get().oid
    HistorySource.objects.update(oid=None)
    died(database)
    archive.refresh_from_db()
    assert read(database, archive) == [2]
    assert (
        HistorySource.objects.get().oid == known == database.value("select 'messages.message_archive'::regclass::oid")
    )
