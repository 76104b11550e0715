"""COMMIT succeeded but its answer is lost, in PostgreSQL itself: files named in the manifest by then stay."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import django.db
import pytest
from django.db import connections

from pgqueue_admin.embedded.postgresql import PostgreSQL
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.storage.orphan_cleanup import OLD, sweep
from pgqueue_admin.models import DataFile, HistoryBatch, HistoryCompaction
from tests.history.tables import died
from tests.lost_commit import WAITS, end_who_waits, nobody_stands_by, who_inserts_waits
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.spark
Connect = Callable[[str], Any]


@pytest.fixture
def nobody(server: PostgreSQL, connect: Connect) -> Iterator[Any]:
    """The server waits for a standby that does not exist."""
    admin = connect(server.dsn())
    with nobody_stands_by(admin):
        yield admin


def test_files_that_were_named_stay(
    nobody: Any, database: Any, driver: Callable[..., BatchLoop], history: Path
) -> None:
    """Of a batch and of a compaction; both are done, although the driver never got the answer."""
    who_inserts_waits(database, "pgqueue_console.pgqueue_datafile")
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


def answer_lost(database: Any, driver: BatchLoop) -> None:
    """Run a turn and terminate its session while its durable COMMIT waits for the answer."""
    turning = threading.Thread(target=turn, args=(driver,))
    turning.start()
    waiting = until(lambda: database.one(WAITS) or not turning.is_alive(), what="COMMIT waits")
    assert waiting is not True, "it ended before"
    end_who_waits(database)
    turning.join(PATIENCE)
    assert not turning.is_alive()


def turn(driver: BatchLoop) -> None:
    with suppress(django.db.Error):  # the error does not matter here
        driver.run_once()
    connections.close_all()


def files_are_there(folder: Path) -> int:
    paths = [folder / path for path in DataFile.objects.values_list("path", flat=True)]
    assert [path for path in paths if not path.exists()] == []
    return len(paths)
