"""Old decided messages are pruned from the archive: only behind the history's ledger, and never undecided ones."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.archive import dead_messages, store
from pgqueue_admin.archive import retention as archive_retention
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.housekeeping import pruning, tasks
from pgqueue_admin.models import HistoryBatch, HistorySource, database_clock
from tests import explain
from tests.waiting import PATIENCE, held_up, until

DAY = timedelta(days=1)
OID = "select 'messages.message_archive'::regclass::oid"


@pytest.fixture
def database(console_database: str, connect: Callable[[str], Connection]) -> Connection:
    return connect(console_database)


@pytest.fixture(autouse=True)
def thirty_days(settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 30, "SPARK_MASTER": "local[2]"}


def ended(connection: Connection, days: int = 40, result: str = "success") -> int:
    return store.archive_failed(
        connection, DeadMessage(queue="q", result=result, headers="{}", died_at=database_clock.now() - days * DAY)
    )


def left(connection: Connection) -> list[int]:
    return [row.id for row in connection.all("select id from messages.message_archive order by id")]


def planned(connection: Connection, most: int = 100) -> HistoryBatch:
    batch = planning.plan_batch(connection, sources(connection)[0], most)
    assert batch is not None
    return batch


def read(batch: HistoryBatch) -> None:
    ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [], [])


def test_old_decided_and_read_messages_are_pruned(database: Connection) -> None:
    old, dead, young = ended(database), ended(database, result="failed"), ended(database, days=29)
    read(planned(database))
    assert tasks.prune_archive() == 1
    assert left(database) == [dead, young]
    store_discarded(database, dead)
    assert tasks.prune_archive() == 1
    assert old not in left(database)
    assert left(database) == [young]


def store_discarded(connection: Connection, dead: int) -> None:
    connection.run("update messages.message_archive set resolution = 'discarded' where id = %s", [dead])


def test_recent_discard_of_an_old_death_is_not_pruned(database: Connection, settings: Any) -> None:
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    dead = ended(database, result="failed")
    dead_messages.discard(database, [dead], "ana")
    assert tasks.prune_archive() == 0
    assert [outcome.result for outcome in dead_messages.restore(database, [dead], "ana")] == ["done"]
    dead_messages.discard(database, [dead], "ana")
    database.run("update messages.message_archive set resolved_at = resolved_at - interval '31 days'")
    assert tasks.prune_archive() == 1


def test_message_being_restored_is_passed_over(
    database: Connection, console_database: str, connect: Callable[[str], Connection], settings: Any
) -> None:
    """Waiting for it would delete a message that is dead again and reported as restored."""
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    dead, went = ended(database, result="failed"), list[int]()
    dead_messages.discard(database, [dead], "ana")
    database.run("update messages.message_archive set resolved_at = resolved_at - interval '31 days'")

    def prune() -> None:
        went.append(tasks.prune_archive())
        connections.close_all()

    restoring, pruning = connect(console_database), threading.Thread(target=prune)
    with restoring.transaction():
        assert [outcome.result for outcome in dead_messages.restore(restoring, [dead], "ana")] == ["done"]
        pruning.start()
        until(lambda: went or held_up(database), what="it has come to the message")
    pruning.join(PATIENCE)
    assert (went, left(database)) == ([0], [dead])


def test_replaced_archive_is_not_pruned(database: Connection) -> None:
    """The archive is replaced between the question how far history has read and the deletion: its rows are unread."""
    ended(database)
    asked_about = database.value(OID)
    database.run("alter table messages.message_archive rename to before")
    database.run("create table messages.message_archive (like messages.before including all)")
    ended(database)
    before = database_clock.now() - 30 * DAY
    assert archive_retention.prune(database, before, None, archive_retention.as_of("1/1", asked_about)) == 0
    assert archive_retention.prune(database, before, None, archive_retention.as_of("1/1", database.value(OID))) == 1


def test_prunable_rows_are_found_by_an_index(database: Connection) -> None:
    database.run(
        "insert into messages.message_archive (created_at, handled_by, message, result, died_at)"
        " select now(), 'Billing', '{}', 'success', now() - g * interval '1 minute' from generate_series(1, 20000) g"
    )
    database.run("analyze messages.message_archive")
    database.run(
        "insert into messages.archive_event (archive_id, who, verb)"
        " select g, 'ana', 'retried' from generate_series(1, 20000) g"
    )
    database.run("analyze messages.archive_event")
    arguments: dict[str, Any] = {"before": database_clock.now() - 13.8 * DAY, "read": None, "filed": "3:3:", "most": 10}
    arguments |= {"filed_before": None, "silent": DAY, "archive": "1/1/" + str(database.value(OID))}
    statements = postgresql().archive
    asked = statements.prune(read_by_others=statements.read_by_others, is_settled=statements.is_settled)
    plan = explain.executed(database, asked, arguments)
    assert plan.reads("message_archive") <= explain.BY_INDEX
    assert plan.reads("archive_event") <= explain.BY_INDEX


def test_a_batch_keeps_its_rows_until_it_has_ended(database: Connection) -> None:
    """Planned, started, or one part of several: it may have to be read again."""
    ids = [ended(database) for _ in range(4)]
    assert tasks.prune_archive() == 0
    first = planned(database, most=2)
    assert tasks.prune_archive() == 0
    read(first)
    assert tasks.prune_archive() == 0
    read(planned(database, most=2))
    assert tasks.prune_archive() == 0  # the end of this difference is not known yet
    assert planning.plan_batch(database, HistorySource.objects.get(), 2) is None
    late = ended(database)
    assert tasks.prune_archive() == len(ids)
    assert left(database) == [late]


def test_late_commit_is_kept_until_history_has_read_it(
    database: Connection, console_database: str, connect: Callable[[str], Connection]
) -> None:
    slow = connect(console_database)
    with slow.transaction():
        late = ended(slow)
        ended(database)
        read(planned(database))
    assert tasks.prune_archive() == 1
    assert left(database) == [late]
    read(planned(database))
    assert tasks.prune_archive() == 1


def test_archive_on_another_server_is_not_pruned(database: Connection) -> None:
    ended(database)
    read(planned(database))
    assert planning.plan_batch(database, HistorySource.objects.get()) is None
    HistorySource.objects.update(cluster="of yesterday")
    assert tasks.prune_archive() == 0


def test_in_chunks_and_for_so_long(database: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pruning, archive_retention):
        monkeypatch.setattr(module, "CHUNK", 2)
    for _ in range(5):
        ended(database)
    read(planned(database))
    assert pruning.prune_archive(seconds=0) == 2
    assert pruning.prune_archive() == 3


def test_without_history_age_decides(database: Connection, settings: Any) -> None:
    ended(database)
    settings.PGQUEUE = {**settings.PGQUEUE, "SPARK_MASTER": ""}
    assert tasks.prune_archive() == 1


def test_archive_without_a_retention_is_not_pruned(database: Connection, settings: Any) -> None:
    ended(database)
    settings.PGQUEUE = {**settings.PGQUEUE, "ARCHIVE_RETENTION_DAYS": 0, "SPARK_MASTER": ""}
    assert tasks.prune_archive() == 0
