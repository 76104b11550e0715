"""COMMIT is done and its answer never comes: what the manifest names by then stays. Really lost, by PostgreSQL."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import django.db
import pytest
from django.db import connections

from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.pipeline.driver import Driver
from pgqueue_admin.pipeline.files.sweep import OLD, sweep
from pgqueue_admin.records.models import HistoryBatch, HistoryCompaction, HistoryFile
from tests.pipeline.tables import died
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.spark
Connect = Callable[[str], Any]
WAITS = "select pid from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()"
# only what names files waits: all other sessions of this server commit without asking anybody
WHO_NAMES_FILES_WAITS = """
create function wait_for_a_standby() returns trigger language plpgsql as
    $$ begin perform set_config('synchronous_commit', 'on', true); return null; end $$;
create trigger waits after insert on pgqueue_historyfile for each statement execute function wait_for_a_standby()
"""


@pytest.fixture
def nobody(server: PostgreSQL, connect: Connect) -> Iterator[Any]:
    """The server waits for a standby that there is none of."""
    admin = connect(server.dsn())
    for change in ("set synchronous_standby_names = 'nobody'", "reset synchronous_standby_names"):
        admin.run(f"alter system {change}")
        admin.run("select pg_reload_conf()")
        if change.startswith("set"):
            yield admin


def test_files_that_were_named_stay(nobody: Any, database: Any, driver: Callable[..., Driver], history: Path) -> None:
    """Of a batch, and of a compaction; both are done, whoever heard of it."""
    database.run(WHO_NAMES_FILES_WAITS)
    for _ in range(2):
        died(database)
        answer_lost(database, driver())
        assert files_are_there(history) > 0
    assert [batch.state for batch in HistoryBatch.objects.all()] == ["done", "done"]
    answer_lost(database, driver(many=2))
    assert [each.state for each in HistoryCompaction.objects.all()] == ["done"]
    assert files_are_there(history) == 1
    assert sweep(history, now=2**33 + OLD) > 0
    assert files_are_there(history) == 1


def answer_lost(database: Any, driver: Driver) -> None:
    """A turn whose session is ended while its COMMIT, durable by then, waits for its answer."""
    turning = threading.Thread(target=turn, args=(driver,))
    turning.start()
    waiting = until(lambda: database.one(WAITS) or not turning.is_alive(), what="COMMIT waits")
    assert waiting is not True, "it ended before"
    database.run("select pg_terminate_backend(%(pid)s)", {"pid": waiting.pid})
    turning.join(PATIENCE)
    assert not turning.is_alive()


def turn(driver: Driver) -> None:
    with suppress(django.db.Error):  # what it says is no matter here
        driver.turn()
    connections.close_all()


def files_are_there(folder: Path) -> int:
    paths = [folder / path for path in HistoryFile.objects.values_list("path", flat=True)]
    assert [path for path in paths if not path.exists()] == []
    return len(paths)
