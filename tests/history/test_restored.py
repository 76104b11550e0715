"""The archive is another table than the one read before: restored from a dump of some server, or recreated."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import connections

from pgqueue_admin.archive import schema
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.plan import planning, safe_upper_bound
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock
from tests.history.dump_restore import dumped, restored
from tests.history.events import DAY, buried, event, filed, kept, midnight
from tests.history.promotion import PAGE, has_all_of, may_see_timelines, rests
from tests.history.standby import there
from tests.history.tables import died, read

Connect = Callable[[str], Any]
ANOTHER = "another table than the one that was read"
NOTHING_NEW = {"cluster": ""}  # as the page says


def said(source: HistorySource, how: dict[str, Any]) -> HistorySource:
    HistorySource.objects.filter(pk=source.pk).update(**how)
    source.refresh_from_db()
    return source


def all_new(database: Any, source: HistorySource) -> HistorySource:
    """The statements of docs/how-to/resume-history.md, verbatim."""
    of_queues, of_console = re.findall(
        r"```sql\n-- on the database with the queues\n(begin;\nupdate .*?)\n\n-- on the console's database\n(.*?)```",
        PAGE.read_text(), re.DOTALL,
    )[0]  # fmt: skip
    for statement in of_queues.split("\n"):
        database.run(statement)
    with connections["default"].cursor() as cursor:
        cursor.execute(of_console)
    source.refresh_from_db()
    return source


def test_from_a_dump_of_this_server(database: Any, console_database: str, tmp_path: Path) -> None:
    """Its transaction ids are valid again once an operator says so."""
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
    """By their ids its rows were read long ago, but none was: nothing is pruned before it is in history."""
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 1, "SPARK_MASTER": "local[2]"}
    other = connect(restarted.dsn("postgres"))
    schema.install(other)
    for days, verb in ((-3, "discarded"), (-2, "retried")):
        event(other, buried(other, died_at=database_clock.now() - 40 * DAY), days, verb)
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    here, there = (each.value("select pg_current_xact_id()::text::int8") for each in (database, other))
    for _ in range(max(0, there - here)):
        database.run("select pg_current_xact_id()")
    assert read(database, archive) == []
    assert kept(database, tmp_path) == 0
    events = "archive_event"
    restored(database, console_database, dumped(restarted.dsn("postgres"), tmp_path, events), events)
    assert tasks.prune_archive() == 0
    rests(database, archive, ANOTHER)
    assert read(database, all_new(database, archive)) == [1, 2]
    assert kept(database, tmp_path) == 2
    assert filed(tmp_path) == {midnight(-3).date(): [(1, "discarded")], midnight(-2).date(): [(2, "retried")]}


def test_made_anew(database: Any, console_database: str, connect: Connect) -> None:
    (archive,) = sources(database)
    died(database, 2)
    assert read(database, archive) == [1, 2]
    database.run("drop schema messages cascade; drop type public.message_status cascade")
    anew = connect(console_database)  # the other session caches the dropped type
    schema.install(anew)
    died(anew)
    rests(anew, archive, ANOTHER)
    assert read(anew, said(archive, NOTHING_NEW)) == [1]


def test_while_a_batch_of_it_was_read(database: Any, console_database: str, tmp_path: Path) -> None:
    (archive,) = sources(database)
    died(database, 2)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    assert safe_upper_bound.batch_blocking_reason(database, batch, batch.rows) == ""
    restored(database, console_database, dumped(console_database, tmp_path))
    assert ANOTHER in safe_upper_bound.batch_blocking_reason(database, batch, batch.rows)
    rests(database, archive, ANOTHER)
    assert read(database, said(archive, NOTHING_NEW)) == [1, 2]
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


def test_behind_a_failover_that_lost_nothing(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect, tmp_path: Path
) -> None:
    """The server's log proves continuity of the server, not of a table restored later."""
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
    """A ledger of an older version."""
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
