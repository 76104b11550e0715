"""The archive prunes only messages whose events are all in files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.dialects import Connection
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.housekeeping import tasks
from pgqueue_admin.models import HistorySource, database_clock
from tests.history.events import DAY, buried, event, filed, kept, midnight, midnight_passes, moved_back

pytestmark = pytest.mark.usefixtures("one_day")


def test_the_archive_waits_until_it_is_in_a_file_what_became_of_a_message(
    database: Connection, settings: Any, tmp_path: Path
) -> None:
    """After a row is deleted, its events can no longer be matched to its number."""
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30, "SPARK_MASTER": "local[2]"}
    (archive,) = sources(database)
    died = database_clock.now() - 40 * DAY
    buried(database, result="success", died_at=died)
    discarded = buried(database, died_at=died)
    dead_messages.discard(database, [discarded], "ana")
    database.run("update messages.message_archive set resolved_at = resolved_at - interval '31 days'")
    batch = planning.plan_batch(database, archive)
    assert batch
    ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [], [])
    assert tasks.prune_archive() == 1  # the one without an event
    assert kept(database, tmp_path) == 0
    assert tasks.prune_archive() == 0  # it was read, but today's events are not in a file yet
    HistorySource.objects.update(events_before=midnight(-40))
    moved_back(database, 31)
    assert tasks.prune_archive() == 0
    assert kept(database, tmp_path) == 1
    assert tasks.prune_archive() == 1
    assert store.get(database, discarded) is None
    assert len(store.events(database, discarded)) == 1
    assert filed(tmp_path) == {midnight(-31).date(): [(2, "discarded")]}


def test_a_late_commit_keeps_its_message_in_the_archive(
    database: Connection, console_database: str, connect: Callable[[str], Any],
    settings: Any, tmp_path: Path,
) -> None:  # fmt: skip
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 1, "SPARK_MASTER": "local[2]"}
    (archive,) = sources(database)
    one = buried(database, result="success", died_at=database_clock.now() - 40 * DAY)
    slow = connect(console_database)
    with slow.transaction():
        event(slow, one)
        assert kept(database, tmp_path) == 0
        batch = planning.plan_batch(database, archive)
        assert batch
        ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [], [])
    assert tasks.prune_archive() == 0
    midnight_passes()
    assert kept(database, tmp_path) == 1
    assert tasks.prune_archive() == 1
