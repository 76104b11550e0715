"""Tables that change between the plan of a batch and its reading: the batch is abandoned, then read correctly."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import DeadMessage
from pgqueue_admin.history.batch_loop import BatchLoop
from pgqueue_admin.history.plan import planning
from pgqueue_admin.history.sources.tables import sources
from pgqueue_admin.history.spark.transforms import parse_headers
from pgqueue_admin.models import HistoryBatch, HistorySource
from tests.history.tables import audit, put
from tests.waiting import PATIENCE, until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("history")]
Connect = Callable[[str], Any]
ENDED = '{"NServiceBus.ProcessingEnded":"2026-11-14 12:00:00:000000 Z"}'


def three(database: Any, but: int = 0) -> HistorySource:
    """An audit queue of three rows, less one, and a plan to read them."""
    source = audit(database)
    for _ in range(3):
        put(database)
    database.run("update audit set headers = %(ended)s", {"ended": ENDED})
    database.run("delete from audit where seq = %(but)s", {"but": but})
    assert planning.plan_batch(database, source) is not None
    return source


def as_numbers_begun_anew(database: Any) -> None:
    """After the owner restarted the numbers, two rows may share one."""
    database.run("alter table audit drop constraint if exists audit_seq_key; drop index if exists audit_seq_key")


def given_up_and_read(source: HistorySource) -> tuple[HistoryBatch, HistoryBatch]:
    given_up, done = HistoryBatch.objects.order_by("pk")
    assert (given_up.state, given_up.token, done.state) == ("abandoned", None, "done")
    source.refresh_from_db()
    assert (source.blocked_reason, source.seq_done) == ("", 3)
    return given_up, done


def test_other_rows_than_were_planned_are_not_taken_for_them(
    database: Any, driver: Callable[..., BatchLoop], history: Path
) -> None:
    """As many rows with other numbers: the owner of an audit queue replaced a row by another."""
    source = three(database)
    as_numbers_begun_anew(database)
    assert database.run("delete from audit where seq = 2") == 1
    database.run("insert into audit (id, seq, headers, body) values (gen_random_uuid(), 1, '{}', '')")
    assert driver().run_once() == 0
    assert not list(history.glob("*/batch-*"))
    source.refresh_from_db()
    assert "not all with the numbers that were planned. What is there now is read soon." in source.blocked_reason
    assert driver().run_once() == 1
    given_up, done = given_up_and_read(source)
    assert "not all with the numbers" in given_up.error
    assert (done.rows, done.kept, done.rejected) == (3, 2, {parse_headers.TWIN: 1})


def test_more_rows_than_were_planned(database: Any, driver: Callable[..., BatchLoop]) -> None:
    """A row was inserted at a free number."""
    source = three(database, but=2)
    database.run("insert into audit (id, seq, headers, body) values (gen_random_uuid(), 2, %(h)s, '')", {"h": ENDED})
    assert driver().run_once() == 0
    assert driver().run_once() == 1
    given_up, done = given_up_and_read(source)
    assert "2 rows were planned, 3 were read" in given_up.error
    assert (done.rows, done.kept) == (3, 3)


def test_rows_of_the_archive_that_somebody_took_keep_nothing_back(
    database: Any, driver: Callable[..., BatchLoop]
) -> None:
    for _ in range(3):
        store.archive_failed(database, DeadMessage(queue="q", headers="{}"))
    assert planning.plan_batch(database, sources(database)[0]) is not None
    database.run("delete from messages.message_archive where seq = 2")
    assert driver().run_once() == 0
    assert driver().run_once() == 1
    given_up, done = HistoryBatch.objects.order_by("pk")
    assert (given_up.state, done.state, done.kept) == ("abandoned", "done", 2)
    assert "3 rows were planned, 2 were read" in given_up.error


def test_rows_of_an_audit_queue_that_somebody_took_are_not_missed(
    database: Any, driver: Callable[..., BatchLoop]
) -> None:
    """Otherwise a queue that its owner keeps emptying would never be read."""
    three(database)
    database.run("delete from audit where seq < 3")
    assert driver().run_once() == 1
    assert HistoryBatch.objects.get().kept == 1


def test_rows_that_a_reader_could_not_see_are_not_taken_for_gone(
    database: Any, console_database: str, connect: Connect, driver: Callable[..., BatchLoop]
) -> None:
    """The table was rewritten while a COPY waited for it: the COPY's older snapshot sees none of the rewritten rows."""
    source = three(database)
    turning = threading.Thread(target=turn, args=(driver(),))
    lockers = connect(console_database), connect(console_database)
    holding = copy_waits(database, *lockers, begin=turning.start)
    holding.run("alter table audit add column more uuid default gen_random_uuid()")
    holding.run("commit")
    turning.join(PATIENCE)
    assert not turning.is_alive()
    assert driver().run_once() == 1
    given_up, done = given_up_and_read(source)
    assert "its table was rewritten" in given_up.error
    assert done.kept == 3


def turn(driver: BatchLoop) -> None:
    driver.run_once()
    connections.close_all()


def copy_waits(database: Any, holding: Any, next_one: Any, begin: Callable[[], None]) -> Any:
    """Return the session holding the lock that a COPY waits for. The reader queries the columns first and waits there.
    Two sessions take turns holding the table, so that only one statement passes at a time.
    """
    lock(holding)
    begin()
    for statement in waiting(database):
        if statement.startswith("COPY"):
            return holding
        queued = threading.Thread(target=lock, args=(next_one,))
        queued.start()
        until(lambda: database.value(QUEUED), what="the next one is behind the reader")
        holding.run("commit")
        queued.join(PATIENCE)
        holding, next_one = next_one, holding
    raise AssertionError


def lock(connection: Any) -> None:
    connection.run("begin")
    connection.run("lock table audit in access exclusive mode")


def waiting(database: Any) -> Iterator[str]:
    """The statement that waits, each time the reader is blocked."""
    while True:
        yield until(lambda: database.value(READER), what="Spark waits for the table")


READER = """select query from pg_stat_activity where application_name like 'pgqueue-admin history %'
    and wait_event_type = 'Lock'"""
QUEUED = """select exists (select from pg_locks where relation = 'audit'::regclass and not granted
    and mode = 'AccessExclusiveLock')"""
