"""A standby with all data is promoted: the server's log proves it, or an operator confirms it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import F

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.formatting import history
from pgqueue_admin.history.plan import planning, xid_continuity
from pgqueue_admin.history.sources import timelines
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.models import HistorySource
from tests.history.promotion import has_all_of, may_see_timelines, rests
from tests.history.standby import following, there
from tests.history.tables import audit, died, put, read

pytestmark = pytest.mark.chaos
Connect = Callable[[str], Any]


@pytest.mark.parametrize("way", ["the archive", "an audit queue"])
def test_a_standby_that_had_all_goes_on_when_somebody_says_so(
    way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """Without proof, the ledger gives the statement to run."""
    source, comes, how = going_on(way, database)
    promoted = connect(there(follower, console_database))
    one_is_read_and_the_other_promoted(source, comes, database, promoted)
    comes(promoted)
    rests(promoted, source, "standby was promoted")
    statement = history.statement(source.blocked_reason)
    assert statement == how
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
    source.refresh_from_db()
    assert len(read(promoted, source)) == 1


@pytest.mark.parametrize("way", ["the archive", "an audit queue"])
def test_a_standby_that_is_proven_to_have_all_goes_on_by_itself(
    way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect, caplog: Any
) -> None:
    """Planned batches are read as planned, earlier writers are not waited for, and it is logged. Twice in a row."""
    source, comes, _ = going_on(way, database)
    may_see_timelines(database)
    comes(database)
    assert read(database, source) == [1]
    source.refresh_from_db()
    comes(database)
    batch = planning.plan_batch(database, source)
    assert batch is not None
    writing = connect(console_database)
    writing.run("begin")
    comes(writing)
    promoted = connect(there(follower, console_database))
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    comes(promoted)
    source.refresh_from_db()
    assert planning.plan_batch(promoted, source) == batch
    found = read(promoted, source)
    assert found[0] == 2
    assert len(found) == 2, "nothing twice, nothing lost"
    assert "is read on from another timeline, 00000002 after 00000001" in caplog.text
    with following(follower) as next_one:
        again = connect(there(next_one, console_database))
        comes(promoted)
        source.refresh_from_db()
        assert len(read(promoted, source)) == 1
        has_all_of(promoted, again)
        again.value("select pg_promote()")
        comes(again)
        source.refresh_from_db()
        assert len(read(again, source)) == 1
    assert "00000003 after 00000002" in caplog.text


@pytest.mark.parametrize("way", ["the archive", "an audit queue"])
@pytest.mark.parametrize("missing", ["wal_flush_lsn", "wal_flush_at", "timeline_start_lsn", "older"])
def test_incomplete_log_position_proves_nothing(
    missing: str, way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """A ledger of an older version; or one whose driver read on and recorded no log position."""
    source, comes, _ = going_on(way, database)
    may_see_timelines(database)
    promoted = connect(there(follower, console_database))
    one_is_read_and_the_other_promoted(source, comes, database, promoted)
    noted = {"watermark": F("wal_flush_at") + timedelta(seconds=1)} if missing == "older" else {missing: None}
    HistorySource.objects.filter(pk=source.pk).update(**noted)
    rests(promoted, source, "standby was promoted")


def test_one_byte_read_beyond_the_branch_proves_nothing(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    source, comes, _ = going_on("the archive", database)
    may_see_timelines(database)
    promoted = connect(there(follower, console_database))
    one_is_read_and_the_other_promoted(source, comes, database, promoted)
    comes(promoted)
    source.refresh_from_db()
    here = xid_continuity.cluster(promoted)
    branched_off = timelines.of(promoted, here, source).began
    assert branched_off is not None
    for written, is_proven in ((branched_off, True), (branched_off + 1, False)):
        source.wal_flush_lsn = written
        assert timelines.has_all(promoted, here, source) == is_proven


def test_a_sequence_that_is_not_in_the_log_proves_nothing(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """An unlogged table is empty after a promotion, and its numbers restart."""
    source, comes, _ = going_on("an audit queue", database)
    may_see_timelines(database)
    database.run("alter table audit set unlogged")
    promoted = connect(there(follower, console_database))
    for _ in range(3):
        comes(database)
    assert len(read(database, source)) == 3
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    if promoted.raw.info.server_version < 160_000:  # which cannot even read such a sequence there
        with pytest.raises(DatabaseError, match="bad magic number"):
            planning.plan_batch(promoted, source)
        return
    for _ in range(5):
        comes(promoted)
    rests(promoted, source, "standby was promoted")


def one_is_read_and_the_other_promoted(
    source: HistorySource, comes: Callable[..., None], database: Any, standby: Any
) -> None:
    """The standby has the whole log until then."""
    comes(database)
    assert read(database, source) == [1]
    has_all_of(database, standby)
    standby.value("select pg_promote()")


def going_on(way: str, database: Any) -> tuple[HistorySource, Callable[..., None], str]:
    """A source, its writer, and the operator's statement if nothing was lost (docs/how-to/resume-history.md)."""
    if way == "the archive":
        table, source = ARCHIVE, sources(database)[0]
    else:
        table, source = '"public"."audit"', audit(database)
    comes = died if way == "the archive" else put
    change = "cluster = ''" if way == "the archive" else "oid = null"
    return source, comes, f"""update pgqueue_console.pgqueue_historysource set {change} where "table" = '{table}';"""
