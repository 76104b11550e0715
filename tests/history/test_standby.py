"""Rows are read from a real standby (streaming replication) once it has all planned ones, never before."""

import traceback
from collections.abc import Callable
from typing import Any

import pytest

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources import read_sessions
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.models import HistoryBatch, HistorySource, Rollup
from tests.history.standby import there
from tests.waiting import until

SCANS = """select coalesce(seq_scan, 0) + coalesce(idx_scan, 0) from pg_stat_user_tables
    where relid = 'messages.message_archive'::regclass"""


def read_there(settings: Any, dsn: str) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "HISTORY_URL": dsn}


def died(connection: Any) -> None:
    store.archive_failed(connection, DeadMessage(queue="q", headers="{}"))


def test_read_waits_until_the_standby_has_the_planned_rows(
    follower: PostgreSQL, console_database: str, connect: Callable[[str], Any], settings: Any, monkeypatch: Any
) -> None:
    database, looking = connect(console_database), connect(there(follower, console_database))
    read_there(settings, there(follower, console_database))
    died(database)
    assert read_sessions.read_from(database) == there(follower, console_database)
    assert looking.value("select count(*) from messages.message_archive") == 1, "it can be seen there"
    looking.run("select pg_wal_replay_pause()")
    until(lambda: looking.value("select pg_get_wal_replay_pause_state()") == "paused")
    died(database)
    monkeypatch.setattr(read_sessions, "PATIENCE", 0.3)
    with pytest.raises(read_sessions.StandbyUnreachable, match="bytes behind"):
        read_sessions.read_from(database)
    looking.run("select pg_wal_replay_resume()")
    monkeypatch.undo()
    read_sessions.read_from(database)
    assert looking.value("select count(*) from messages.message_archive") == 2


def test_server_that_is_no_standby_is_not_read(
    follower: PostgreSQL, server: PostgreSQL, console_database: str, connect: Callable[[str], Any], settings: Any
) -> None:
    """The primary itself, a promoted standby, and one that is down: the batch stays planned, with the reason."""
    database = connect(console_database)
    died(database)
    (archive,) = sources(database)
    batch = planning.plan_batch(database, archive)
    assert batch is not None
    promoted = there(follower, console_database)
    for dsn, why in (
        (console_database, "no standby of the database with the queues"),
        (f"postgresql://nobody@127.0.0.1:{ports.free()}/none", "does not answer"),
        (promoted, "no standby of the database with the queues"),
    ):
        if dsn == promoted:
            connect(dsn).value("select pg_promote()")
        read_there(settings, dsn)
        assert BatchLoop().run_once() == 0
        assert why in HistorySource.objects.get().blocked_reason
        batch.refresh_from_db()
        assert (batch.state, batch.attempt) == ("planned", 0)


@pytest.mark.parametrize("dsn", ["postgres//u:s3cret@standby/db", "postgresql://u:s3cret%zz@standby/db"])
def test_a_password_is_in_no_note(
    dsn: str, console_database: str, connect: Callable[[str], Any], settings: Any
) -> None:
    """libpq quotes an address it cannot parse in full, and every user can read History."""
    read_there(settings, dsn)
    with pytest.raises(read_sessions.StandbyUnreachable, match="The URL of the database cannot be read") as refused:
        read_sessions.read_from(connect(console_database))
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.spark
def test_rows_come_from_there(
    follower: PostgreSQL,
    console_database: str,
    connect: Callable[[str], Any],
    settings: Any,
    driver: Callable[..., BatchLoop],
) -> None:
    database = connect(console_database)
    for _ in range(3):
        died(database)
    read_there(settings, there(follower, console_database))
    looking = connect(there(follower, console_database))
    assert looking.value(SCANS) == 0
    assert driver().run_once() == 1
    until(lambda: looking.value(SCANS) > 0, what="its table was looked at there")
    assert HistoryBatch.objects.get().kept == 3
    assert sum(row.messages for row in Rollup.objects.filter(grain="day")) == 3
