"""Transaction ids that became meaningless: another server, or an older state of the same."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history import freshness, ledger
from pgqueue_admin.history.plan import planning, safe_upper_bound
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.models import HistoryBatch, HistorySource
from tests.history.events import event
from tests.history.promotion import PAGE, lags_from_now_on, may_see_timelines, rests
from tests.history.standby import there
from tests.history.tables import audit, died, put, read
from tests.waiting import until

Connect = Callable[[str], Any]
NOTHING_WAS_LOST = {"cluster": ""}  # as docs/how-to/resume-history.md says
MARKED = {"cluster": "", "snapshot": "", "snapshot_target": "", "seq_done": 0}


def marked(database: Any, source: HistorySource, at: Any) -> None:
    """Mark what was read, with the statement of docs/how-to/resume-history.md verbatim."""
    source.refresh_from_db()
    mark = of_docs("update messages.message_archive set xid = case").replace("2026-11-25 03:00", str(at))
    mark = mark.replace("...snapshot...", source.snapshot).replace(
        "...ahead...", source.snapshot_target or source.snapshot
    )
    database.run(mark.replace("0 /* seq_done */", str(source.seq_done)))


def of_docs(begin: str) -> str:
    """The statements for the queues' database on the page, from ``begin`` on."""
    block = re.search(rf"with these values\n({re.escape(begin)}.*?)\n\n--", PAGE.read_text(), re.DOTALL)
    assert block
    return block[1]


def said(source: HistorySource, how: dict[str, Any]) -> HistorySource:
    """Tell the ledger how to continue, as an operator does."""
    HistorySource.objects.filter(table=ARCHIVE).update(**how)
    source.refresh_from_db()
    return source


def used_up(database: Any, number: int) -> None:
    """Use up that many transaction ids."""
    for _ in range(number):
        database.run("select pg_current_xact_id()")


@pytest.mark.parametrize("more", [0, 50])
def test_a_standby_that_lagged_and_was_promoted(
    more: int, follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """It reuses ids that were already read, and has passed them at the next read, or not yet."""
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


def test_numbers_of_a_standby_that_lagged_and_was_promoted(
    follower: PostgreSQL, database: Any, console_database: str, connect: Connect
) -> None:
    """At the next read its sequence is past the position, and only the timeline differs."""
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
    for _ in range(40):  # a sequence logs 32 values ahead
        put(promoted)
    rests(promoted, queue, "a standby was promoted")
    HistorySource.objects.filter(pk=queue.pk).update(oid=None, seq_done=1)
    queue.refresh_from_db()
    assert len(read(promoted, queue)) == 40


def test_ids_that_went_back_are_noticed_once_and_stay_said(database: Any) -> None:
    """An older state of the same server, such as a copy of its disk put back."""
    (archive,) = sources(database)
    died(database)
    ahead = database.value("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint") + 20
    HistorySource.objects.update(snapshot=f"{ahead}:{ahead}:")
    rests(database, archive, "put back")
    used_up(database, 30)
    rests(database, archive, "put back")
    now = database.one(postgresql().history.instant())
    assert freshness.of_archive(now.cluster, now.archive).snapshot == "", "nothing is pruned behind it"
    assert read(database, said(archive, MARKED)) == [1]


def cluster(database: Any) -> str:
    known: str = database.one(postgresql().history.instant()).cluster
    return known


def test_a_dump_in_another_server(database: Any) -> None:
    """Its rows have ids that the new server reaches in years; some were not read before."""
    (archive,) = sources(database)
    died(database, 4)
    database.run("update messages.message_archive set xid = (900000000 + seq)::text::xid8 where seq < 4")
    HistorySource.objects.update(cluster="1/00000001", snapshot="900000002:900000003:900000002", seq_done=0)
    rests(database, archive, "moved to another server")
    at = database.value("select archived_at from messages.message_archive where seq = 4")
    marked(database, archive, at)
    assert read(database, said(archive, MARKED)) == [2, 3, 4]


def test_the_server_of_before_is_read_on_when_it_is_back(database: Any) -> None:
    """Another server's lower ids say nothing about it: it is not recorded as restored itself."""
    (archive,) = sources(database)
    died(database)
    assert read(database, archive) == [1]
    known = HistorySource.objects.values("cluster", "snapshot").get()
    HistorySource.objects.update(cluster="1/00000001", snapshot="900000000:900000000:")
    rests(database, archive, "moved to another server")
    assert HistorySource.objects.get().cluster == "1/00000001"
    HistorySource.objects.update(**known)
    died(database)
    archive.refresh_from_db()
    assert read(database, archive) == [2]


def test_a_dump_of_which_a_backlog_was_being_read(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 3)
    database.run("update messages.message_archive set xid = '900000001'")
    HistorySource.objects.update(
        cluster="1/00000001", snapshot="900000000:900000000:", snapshot_target="900000002:900000002:", seq_done=2
    )
    rests(database, archive, "moved to another server")
    marked(database, archive, database.value("select now() at time zone 'utc'"))
    assert read(database, said(archive, MARKED)) == [3]


def test_a_batch_that_was_planned_on_another_server_is_planned_anew(database: Any) -> None:
    (archive,) = sources(database)
    died(database, 2)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    assert safe_upper_bound.batch_blocking_reason(database, batch, batch.rows) == ""
    HistorySource.objects.update(cluster="1/00000001")
    batch.refresh_from_db()
    assert "moved to another server" in safe_upper_bound.batch_blocking_reason(database, batch, batch.rows)
    rests(database, archive, "moved to another server")
    assert read(database, said(archive, NOTHING_WAS_LOST)) == [1, 2]
    assert [each.state for each in HistoryBatch.objects.order_by("pk")] == ["abandoned", "done"]


def test_operator_reset_during_a_batch_is_kept(database: Any) -> None:
    (archive,) = sources(database)
    died(database)
    batch = planning.plan_batch(database, archive)
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


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_filed_events_are_marked_in_any_session_zone(zone: str, database: Any) -> None:
    """With the statements of docs/how-to/resume-history.md verbatim, in an operator's session."""
    for _ in range(2):
        event(database, 7)
    database.run("set session_replication_role = replica")
    for number, hour in ((1, 2), (2, 3)):  # an hour before a standby's promotion, and the promotion
        at = {"at": f"2026-11-25 {hour:02}:00:00+00", "id": number}
        database.run("update messages.archive_event set at = %(at)s where id = %(id)s", at)
    database.run("reset session_replication_role")
    database.run(f"set time zone '{zone}'")
    snapshot = database.value("select pg_current_snapshot()::text")
    mark = of_docs("begin;\nalter table messages.archive_event").replace("...events_before...", "infinity")
    for statement in mark.replace("...events_snapshot...", snapshot).split(";\n"):
        database.run(statement)
    found = database.all("select xid = '1' as is_in_files from messages.archive_event order by id")
    assert [row.is_in_files for row in found] == [True, False]
