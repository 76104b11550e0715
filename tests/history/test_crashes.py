"""A crashed server reuses values that had not reached the disk: history relies on none of them. No Spark."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import schema
from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.history.storage import event_files
from tests.history.events import event
from tests.history.tables import audit, died, put, read
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.usefixtures("console_database")]
Connect = Callable[[str], Any]


@pytest.fixture
def queues(restarted: PostgreSQL, connect: Connect) -> Any:
    database = connect(restarted.dsn())
    schema.install(database)
    return database


def crash(server: PostgreSQL) -> None:
    assert server.pid
    os.kill(server.pid, signal.SIGQUIT)
    until(lambda: not server.running, what="the server is gone")
    server.start()


def rolled_back(database: Any, write: Callable[[Any], None]) -> None:
    for _ in range(3):
        database.run("begin")
        write(database)
        database.run("rollback")


def numbers(database: Any) -> set[int]:
    return {row.seq for row in database.all("select seq from messages.message_archive")}


def test_ids_of_what_was_rolled_back_are_those_of_rows_after_a_crash(
    restarted: PostgreSQL, queues: Any, connect: Connect
) -> None:
    """If they counted as ended before the crash, the rows would be taken for read."""
    died(queues)
    (archive,) = sources(queues)
    found = read(queues, archive)
    rolled_back(queues, died)
    found += read(queues, archive)
    crash(restarted)
    queues = connect(restarted.dsn())
    died(queues, 4)
    assert set(found + read(queues, archive)) == numbers(queues)


def test_asynchronous_commit_is_read_once_durable(restarted: PostgreSQL, queues: Any, connect: Connect) -> None:
    queues.run("set synchronous_commit = off")
    died(queues)
    (archive,) = sources(queues)
    found = read(queues, archive)
    crash(restarted)
    queues = connect(restarted.dsn())
    died(queues, 4)
    assert len(found) == 1
    assert set(found + read(queues, archive)) == numbers(queues)


def test_asynchronous_seq_is_read_once_no_crash_can_reuse_it(
    restarted: PostgreSQL, queues: Any, connect: Connect
) -> None:
    queues.run("set synchronous_commit = off")
    source = audit(queues)
    put(queues)
    found = read(queues, source)
    crash(restarted)
    queues = connect(restarted.dsn())
    put(queues)
    source.refresh_from_db()
    found += read(queues, source)
    assert found == [row.seq for row in queues.all("select seq from audit order by seq")]
    assert len(found) == 2


def test_events_too(restarted: PostgreSQL, queues: Any, connect: Connect, tmp_path: Path) -> None:
    died(queues)
    (archive,) = sources(queues)
    read(queues, archive)
    rolled_back(queues, died)
    event_files.keep(queues, tmp_path)
    crash(restarted)
    queues = connect(restarted.dsn())
    ids = [row.id for row in queues.all("select id from messages.message_archive")]
    for each in [*ids, *ids]:
        event(queues, each)
    archive.events_before = None
    archive.save(update_fields=["events_before"])
    assert event_files.keep(queues, tmp_path) == 2 * len(ids)
