"""Writers that commit late, roll back, prepare; two racing drivers: each committed row is read once. No Spark."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history import ledger
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.partition_queries import selects
from pgqueue_admin.history.sources.tables import ARCHIVE, sources
from pgqueue_admin.models import HistoryBatch, HistorySource, Queue
from pgqueue_admin.transport.tables.table_queue import TableQueue
from tests.history.writers import writing
from tests.waiting import PATIENCE

WRITERS, TRANSACTIONS, MOST = 5, 12, 7


class Reader(threading.Thread):
    """Plans, reads and ends batches as a driver does, from the tables it found at the start."""

    def __init__(self, dsn: str, is_over: Callable[[], bool]):
        super().__init__(name="reader", daemon=True)
        self.dsn, self.is_over = dsn, is_over
        self.error: BaseException | None = None
        self.read: Counter[int] = Counter()

    def run(self) -> None:
        try:
            with postgresql().connect(self.dsn, for_handlers=True) as connection:
                (archive,) = sources(connection)
                while not self.is_over() or self.run_once(connection, archive):
                    self.run_once(connection, archive)
        except BaseException as error:
            self.error = error
        finally:
            connections.close_all()

    def run_once(self, connection: Any, archive: HistorySource) -> bool:
        """Whether there was work. ``archive`` stays stale, as in a driver busy with another table."""
        batch = planning.plan_batch(connection, archive, MOST)
        if batch is None:
            archive.refresh_from_db()
            return planning.plan_batch(connection, archive, MOST) is not None
        try:
            token = ledger.begin(batch, "test")
            found = [row.seq for part in selects(connection, batch, 2) for row in connection.all(part)]
            ledger.done(batch, token, len(found), {}, [], [])
            self.read.update(found)
        except ledger.Superseded:
            pass  # the other driver has it
        return True


def test_concurrent_writers_and_readers_read_each_row_once(
    console_database: str, connect: Callable[[str], Any]
) -> None:
    database = connect(console_database)
    sources(database)
    ended = threading.Event()
    readers = [Reader(console_database, ended.is_set) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        with writing(console_database, WRITERS, TRANSACTIONS):
            pass
    finally:
        ended.set()
        for reader in readers:
            reader.join(PATIENCE)
    assert [(reader.is_alive(), reader.error) for reader in readers] == [(False, None)] * 2
    committed = {row.seq for row in database.all("select seq from messages.message_archive")}
    found = readers[0].read + readers[1].read
    assert len(committed) > TRANSACTIONS
    assert (set(found), max(found.values())) == (committed, 1)
    assert HistoryBatch.objects.filter(state="done").count() == HistoryBatch.objects.count()


def test_a_table_that_another_driver_read_meanwhile_is_not_read_twice(
    console_database: str, connect: Callable[[str], Any]
) -> None:
    """The position that this driver saw is stale: it is neither planned from nor advanced."""
    database = connect(console_database)
    with writing(console_database, 1, 4):
        pass
    (mine,), (other,) = sources(database), sources(database)
    batch = planning.plan_batch(database, other)
    assert batch is not None
    ledger.done(batch, ledger.begin(batch, "test"), batch.rows, {}, [], [])
    found = planning.by_snapshots(database, mine, 100)
    assert found.rows == batch.rows
    assert ledger.planned(mine, found, is_last=True) is None
    before = HistorySource.objects.get(table=ARCHIVE).snapshot
    ledger.nothing_came(mine, found)
    assert HistorySource.objects.get(table=ARCHIVE).snapshot == before
    assert planning.plan_batch(database, mine) is None
    assert HistoryBatch.objects.count() == 1


def test_two_that_plan_at_once_have_one_batch(console_database: str, connect: Callable[[str], Any]) -> None:
    database = connect(console_database)
    with writing(console_database, 1, 4):
        pass
    (mine,), (other,) = sources(database), sources(database)
    found = planning.by_snapshots(database, mine, 100)
    assert ledger.planned(mine, found, True) == ledger.planned(other, found, True)


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_audit_queue_with_a_prepared_transaction(
    end: str, console_database: str, connect: Callable[[str], Any]
) -> None:
    """It has no session any more but still holds a number: nothing is decided before it ends."""
    database, slow = connect(console_database), connect(console_database)
    TableQueue(postgresql(), Address("public", "audit")).create(database)
    Queue.objects.create(schema="public", table="audit", kind="audit")
    source = next(each for each in sources(database) if each.table != ARCHIVE)
    put = "insert into audit (id, headers, body) values (gen_random_uuid(), '{}', '')"
    for command in ("begin", put, "prepare transaction 'late'"):
        slow.run(command)
    slow.close()
    database.run(put)
    assert planning.plan_batch(database, source) is None
    database.run(f"{end} prepared 'late'")
    source.refresh_from_db()
    batch = planning.plan_batch(database, source)
    assert batch is not None
    assert batch.rows == (2 if end == "commit" else 1)
