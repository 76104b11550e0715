"""Transaction ids that say nothing any more: a server that is another one, or an older state of the same."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.models import F

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.pipeline import ledger
from pgqueue_admin.pipeline.plan import deciding, planning, transactions
from pgqueue_admin.pipeline.sources.tables import ARCHIVE, sources
from pgqueue_admin.records.models import HistoryBatch, HistorySource
from pgqueue_admin.wording import history
from tests.pipeline.followers import following, there
from tests.pipeline.tables import audit, died, put, read
from tests.waiting import until

Connect = Callable[[str], Any]
PAGE = Path(__file__).resolve().parents[2] / "docs/history.md"
NOTHING_WAS_LOST = {"cluster": ""}  # as docs/history.md says
MARKED = {"cluster": "", "snapshot": "", "ahead": "", "seq_done": 0}
MARK = """
update messages.message_archive set xid = case
    when archived_at < %(at)s and (pg_visible_in_snapshot(xid, %(snapshot)s)
        or pg_visible_in_snapshot(xid, %(ahead)s) and seq <= %(seq_done)s)
    then '1' else pg_current_xact_id() end
"""


def rests(database: Any, source: HistorySource, why: str) -> None:
    """Nothing of it is planned, and the ledger says why."""
    source.refresh_from_db()
    assert planning.plan(database, source) is None
    source.refresh_from_db()
    assert why in source.note
    assert "docs/history.md" in source.note


def marked(database: Any, source: HistorySource, at: Any) -> None:
    source.refresh_from_db()
    known = {"snapshot": source.snapshot, "ahead": source.ahead or source.snapshot, "seq_done": source.seq_done}
    database.run(MARK, {"at": at, **known})


def said(source: HistorySource, how: dict[str, Any]) -> HistorySource:
    """Somebody says how to go on."""
    HistorySource.objects.filter(table=ARCHIVE).update(**how)
    source.refresh_from_db()
    return source


def lags_from_now_on(standby: Any) -> None:
    standby.run("alter system set primary_conninfo = ''")
    standby.run("select pg_reload_conf()")
    until(lambda: standby.value("select count(*) from pg_stat_wal_receiver") == 0, what="it hears of nothing more")


def used_up(database: Any, number: int) -> None:
    """So many transaction ids."""
    for _ in range(number):
        database.run("select pg_current_xact_id()")


@pytest.mark.parametrize("more", [0, 50])
def test_a_standby_that_lagged_and_was_promoted(
    more: int, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """It gives out ids once more that were read up to, and is past them at the next look, or not yet."""
    (archive,) = sources(database)
    may_see_timelines(database)
    promoted = connect(there(follower, console_database))
    died(database)
    assert read(database, archive) == [1]
    until(lambda: promoted.value("select count(*) from messages.message_archive") == 1, what="it has the first")
    lags_from_now_on(promoted)
    used_up(database, 10)
    died(database)
    assert read(database, archive) == [2], "which is lost"
    promoted.value("select pg_promote()")
    at = promoted.value("select now() at time zone 'utc'")
    used_up(promoted, more)
    died(promoted, 2)
    rests(promoted, archive, "promoted" if more else "put back")
    used_up(promoted, 50)
    rests(promoted, archive, "promoted" if more else "put back")
    marked(promoted, archive, at)
    assert len(read(promoted, said(archive, MARKED))) == 2
    died(promoted)
    assert len(read(promoted, archive)) == 1


def has_all_of(database: Any, standby: Any) -> None:
    """Of what is in the log by now."""
    written = transactions.written(database)
    behind = "select pg_last_wal_replay_lsn() - '0/0'::pg_lsn >= %(written)s"
    until(lambda: standby.value(behind, {"written": written}), what="it has all")


def may_see_timelines(database: Any) -> None:
    """As a superuser lets us: the very statements of docs/history.md."""
    block = re.search(r"```sql\n([^`]*create function messages.timeline_history.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    for statement in re.split(r";(?: --.*)?\n", block[1])[:-1]:
        database.run(statement.replace("to pgqueue_console", "to current_user"))


@pytest.mark.parametrize("way", ["the archive", "an audit queue"])
def test_a_standby_that_had_all_goes_on_when_somebody_says_so(
    way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """Where nothing proves it, the ledger gives the statement to be copied."""
    source, comes, how = going_on(way, database)
    promoted = connect(there(follower, console_database))
    comes(database)
    assert read(database, source) == [1]
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    comes(promoted)
    rests(promoted, source, "standby was promoted")
    statement = history.statement(source.note)
    assert statement == how
    with connections["default"].cursor() as cursor:
        cursor.execute(statement)
    source.refresh_from_db()
    assert len(read(promoted, source)) == 1


@pytest.mark.parametrize("way", ["the archive", "an audit queue"])
def test_a_standby_that_is_proven_to_have_all_goes_on_by_itself(
    way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect, caplog: Any
) -> None:
    """What was planned is read as planned, who was writing is not waited for, and it is logged. Twice in a row."""
    source, comes, _ = going_on(way, database)
    may_see_timelines(database)
    comes(database)
    assert read(database, source) == [1]
    source.refresh_from_db()
    comes(database)
    batch = planning.plan(database, source)
    assert batch is not None
    writing = connect(console_database)
    writing.run("begin")
    comes(writing)
    promoted = connect(there(follower, console_database))
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    comes(promoted)
    source.refresh_from_db()
    assert planning.plan(promoted, source) == batch
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
@pytest.mark.parametrize("missing", ["log_written", "log_at", "line_began", "older"])
def test_nothing_is_taken_for_proven_of_which_something_is_not_known(
    missing: str, way: str, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """A ledger of the version before; or its driver read on, at last, and noted nothing of the log."""
    source, comes, _ = going_on(way, database)
    may_see_timelines(database)
    promoted = connect(there(follower, console_database))
    comes(database)
    assert read(database, source) == [1]
    has_all_of(database, promoted)
    promoted.value("select pg_promote()")
    noted = {"complete_to": F("log_at") + timedelta(seconds=1)} if missing == "older" else {missing: None}
    HistorySource.objects.filter(pk=source.pk).update(**noted)
    rests(promoted, source, "standby was promoted")


def test_a_sequence_that_is_not_in_the_log_proves_nothing(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """Such a table is empty where a standby is promoted, and its numbers begin anew."""
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
            planning.plan(promoted, source)
        return
    for _ in range(5):
        comes(promoted)
    rests(promoted, source, "standby was promoted")


def going_on(way: str, database: Any) -> tuple[HistorySource, Callable[..., None], str]:
    """A source, what comes to it, and what somebody says where nothing was lost, as docs/history.md has it."""
    if way == "the archive":
        table, source = ARCHIVE, sources(database)[0]
    else:
        table, source = '"public"."audit"', audit(database)
    comes = died if way == "the archive" else put
    change = "cluster = ''" if way == "the archive" else "oid = null"
    return source, comes, f"""update pgqueue_historysource set {change} where "table" = '{table}';"""


def test_numbers_of_a_standby_that_lagged_and_was_promoted(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """At the next look its sequence is past what was read, and nothing but the timeline tells."""
    queue = audit(database)
    may_see_timelines(database)
    promoted = connect(there(follower, console_database))
    put(database)
    assert read(database, queue) == [1]
    until(lambda: promoted.value("select to_regclass('audit')"), what="it has the table")
    until(lambda: promoted.value("select count(*) from audit") == 1, what="it has the first")
    lags_from_now_on(promoted)
    put(database)
    queue.refresh_from_db()
    assert read(database, queue) == [2], "which is lost"
    promoted.value("select pg_promote()")
    for _ in range(40):  # a sequence writes ahead of itself by 32
        put(promoted)
    rests(promoted, queue, "a standby was promoted")
    HistorySource.objects.filter(pk=queue.pk).update(oid=None, seq_done=1)
    queue.refresh_from_db()
    assert len(read(promoted, queue)) == 40


def test_ids_that_went_back_are_noticed_once_and_stay_said(database: Any) -> None:
    """An older state of the same server: a copy of its disk that was put in its place, say."""
    (archive,) = sources(database)
    died(database)
    ahead = database.value("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint") + 20
    HistorySource.objects.update(snapshot=f"{ahead}:{ahead}:")
    rests(database, archive, "put back")
    used_up(database, 30)
    rests(database, archive, "put back")
    assert ledger.read_to(ARCHIVE, cluster(database)) == "", "nothing is pruned behind it"
    assert read(database, said(archive, MARKED)) == [1]


def cluster(database: Any) -> str:
    known: str = database.one(postgresql().pipeline.instant()).cluster
    return known


def test_a_dump_in_another_server(database: Any) -> None:
    """Its rows have ids that come there in years; some of them were not read before."""
    (archive,) = sources(database)
    died(database, 4)
    database.run("update messages.message_archive set xid = (900000000 + seq)::text::xid8 where seq < 4")
    HistorySource.objects.update(cluster="1/00000001", snapshot="900000002:900000003:900000002", seq_done=0)
    rests(database, archive, "moved to another server")
    at = database.value("select archived_at from messages.message_archive where seq = 4")
    marked(database, archive, at)
    assert read(database, said(archive, MARKED)) == [2, 3, 4]


def test_a_dump_of_which_a_backlog_was_being_read(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    database.run("update messages.message_archive set xid = '900000001'")
    HistorySource.objects.update(
        cluster="1/00000001", snapshot="900000000:900000000:", ahead="900000002:900000002:", seq_done=2
    )
    rests(database, archive, "moved to another server")
    marked(database, archive, database.value("select now() at time zone 'utc'"))
    assert read(database, said(archive, MARKED)) == [3]


def test_a_batch_that_was_planned_on_another_server_is_planned_anew(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 2)
    batch = planning.plan(database, archive)
    assert batch is not None
    assert deciding.why_not_of_it(database, batch, is_short=False) == ""
    HistorySource.objects.update(cluster="1/00000001")
    batch.refresh_from_db()
    assert "moved to another server" in deciding.why_not_of_it(database, batch, is_short=False)
    rests(database, archive, "moved to another server")
    assert read(database, said(archive, NOTHING_WAS_LOST)) == [1, 2]
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


def test_what_the_operator_said_while_a_batch_was_read_stays_said(database: Any) -> None:
    (archive,) = sources(database)
    died(database)
    batch = planning.plan(database, archive)
    assert batch is not None
    token = ledger.begin(batch, "test")
    HistorySource.objects.update(**MARKED)
    with pytest.raises(ledger.Superseded):
        ledger.done(batch, token, 1, {}, [], [])
    archive.refresh_from_db()
    assert read(database, archive) == [1]


def test_a_ledger_that_noted_no_timeline_goes_on(database: Any) -> None:
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    HistorySource.objects.update(cluster=cluster(database).partition("/")[0])
    archive.refresh_from_db()
    died(database)
    assert read(database, archive) == [2]
    archive.refresh_from_db()
    assert archive.cluster == cluster(database)
