"""Sheet A5: each defect of the original, shown by its own statements, and ours in the same situation."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease import Expired, LeaseQueue
from tests.lease import original
from tests.lease.tables import archived, let_expire, waiting
from tests.waiting import held_up, until

UTC_NOW = "(now() at time zone 'utc')"
Open = Callable[..., psycopg.Connection[Any]]


@pytest.fixture
def theirs(engine_database: str) -> Iterator[Open]:
    """Sessions of an original client, in UTC unless a zone is given."""
    opened: list[psycopg.Connection[Any]] = []

    def open_one(zone: str = "UTC", autocommit: bool = True) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(engine_database, autocommit=autocommit, options=f"-c timezone={zone}"))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@contextmanager
def held_in_the_middle(engine: Connection, connect: Callable[[], Connection], queue: LeaseQueue) -> Iterator[Any]:
    """Run ``expire`` and hold it inside its statement until the block ends. Yields the future of its result."""
    engine.run(
        "create function wait_here() returns trigger language plpgsql as"
        " $$ begin perform pg_advisory_xact_lock(42); return new; end $$;"
        "create trigger a_wait before insert on messages.message_archive for each row execute function wait_here()"
    )
    holder = connect()
    with ThreadPoolExecutor() as pool:
        with holder.transaction():
            holder.run("select pg_advisory_xact_lock(42)")
            running = pool.submit(queue.expire)
            until(lambda: held_up(engine), what="it waits in the middle")
            yield running
        running.result(60)


def lock_that_is_over(engine: Connection, message: int) -> None:
    over = f"update messages.message set lock_expires_at = {UTC_NOW} - interval '1 h' where id = %(id)s"
    engine.run(over, {"id": message})


def two_of_which_one_is_over(engine: Connection, queue: LeaseQueue) -> tuple[int, int]:
    over, other = queue.publish_many([["first"], ["second"]])
    lock_that_is_over(engine, over)
    return over, other


def test_1_loss_race_theirs(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    _, other = two_of_which_one_is_over(engine, queue)
    with theirs() as cron, cron.transaction():
        cron.execute(original.CLEANUP_COPY)
        lock_that_is_over(engine, other)
        cron.execute(original.CLEANUP_DELETE)
    assert waiting(engine) == []
    assert archived(engine, "message") == [(["first"],)]  # the second message is lost


def test_1_loss_race_ours(engine: Connection, engine_database: str, connect: Any, queue: LeaseQueue) -> None:
    over, other = two_of_which_one_is_over(engine, queue)
    with held_in_the_middle(engine, lambda: connect(engine_database), queue) as running:
        lock_that_is_over(engine, other)
    assert running.result() == Expired(archived=1, released=0)
    assert waiting(engine) == [other]
    assert queue.expire() == Expired(1, 0)
    assert [row[0] for row in archived(engine)] == [str(over), str(other)]


def test_2_relock_race_theirs(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    over, _ = two_of_which_one_is_over(engine, queue)
    worker = theirs()
    with theirs() as cron, cron.transaction():
        cron.execute(original.CLEANUP_COPY)
        row = original.retrieve(worker, over)
        cron.execute(original.CLEANUP_DELETE)
    assert over in waiting(engine)
    original.finish(worker, row, "success")
    assert archived(engine, "message, result::text") == [(["first"], "lock_expired"), (["first"], "success")]


def test_2_relock_race_ours(
    engine: Connection, engine_database: str, connect: Any, queue: LeaseQueue, theirs: Open
) -> None:
    """A row being archived cannot be locked by any program; a lock taken before is kept."""
    over, other = two_of_which_one_is_over(engine, queue)
    with held_in_the_middle(engine, lambda: connect(engine_database), queue) as running:
        assert original.retrieve(theirs(), over) is None
    assert running.result() == Expired(1, 0)
    assert archived(engine, "message, result::text") == [(["first"], "lock_expired")]
    lock_that_is_over(engine, other)
    worker = theirs(autocommit=False)
    assert worker.execute(original.TAKE, [other]).fetchone()
    assert queue.expire() == Expired(0, 0)
    worker.rollback()
    assert original.retrieve(worker, other)
    worker.commit()
    assert queue.expire() == Expired(0, 0)
    assert waiting(engine) == [other]


def test_3_late_finisher_theirs(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    message = queue.publish(["x"])
    worker = theirs()
    row = original.retrieve(worker, message, seconds=0.001)
    with theirs() as cron, cron.transaction():
        cron.execute(original.CLEANUP_COPY)
        cron.execute(original.CLEANUP_DELETE)
    original.finish(worker, row, "success")
    assert [row[1] for row in archived(engine)] == ["lock_expired", "success"]


def test_3_late_finisher_ours(engine: Connection, queue: LeaseQueue) -> None:
    message = queue.publish(["x"])
    (lease,) = queue.claim()
    let_expire(engine, message)
    assert queue.expire() == Expired(1, 0)
    assert (queue.finish(lease), queue.renew(lease), queue.release(lease)) == (None, False, False)
    assert [row[:2] for row in archived(engine)] == [(str(message), "lock_expired")]


def test_3_a_foreign_late_finish_is_taken_and_marked(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    """It has no message id, so the ending is matched by the message's time and content."""
    message = queue.publish(["x"])
    worker = theirs()
    row = original.retrieve(worker, message, seconds=0.001)
    assert queue.expire() == Expired(1, 0)
    original.finish(worker, row, "success", "late")
    rows = archived(engine, "id, message_id, result::text, details, second_ending_of")
    assert rows[0][1:3] == (str(message), "lock_expired")
    assert rows[1][1:] == (None, "success", "late", rows[0][0])


def test_3_a_foreign_ending_has_the_id_of_the_message_it_deleted(
    engine: Connection, queue: LeaseQueue, theirs: Open
) -> None:
    """Even beside an equal message of the same moment that expired before: the ids differ."""
    first, second = queue.publish_many([["x"], ["x"]])
    lock_that_is_over(engine, first)
    worker = theirs()
    row = original.retrieve(worker, second)
    assert queue.expire() == Expired(1, 0)
    original.finish(worker, row, "success")
    assert archived(engine, "message_id, second_ending_of") == [(str(first), None), (str(second), None)]


def test_3_the_copy_of_the_original_s_cron_is_no_second_ending(
    engine: Connection, queue: LeaseQueue, theirs: Open
) -> None:
    """The original's cron copies before it deletes."""
    first, second = queue.publish_many([["x"], ["x"]])
    lock_that_is_over(engine, first)
    assert queue.expire() == Expired(1, 0)
    lock_that_is_over(engine, second)
    with theirs() as cron, cron.transaction():
        cron.execute(original.CLEANUP_COPY)
        cron.execute(original.CLEANUP_DELETE)
    assert archived(engine, "message_id, second_ending_of") == [(str(first), None), (None, None)]


def test_3_a_marker_that_fails_refuses_no_ending(
    engine: Connection, queue: LeaseQueue, theirs: Open, engine_database: str
) -> None:
    """A client's role may insert into the archive but read nothing of it."""
    message = queue.publish(["x"])
    engine.run(
        "drop role if exists narrow; create role narrow; grant usage on schema messages to narrow;"
        "grant insert on messages.message_archive to narrow; grant usage on all sequences in schema messages to narrow"
    )
    try:
        (lease,) = queue.claim()
        assert queue.finish(lease)
        worker = theirs()
        worker.execute("set role narrow")
        insert = original.ARCHIVE.replace("RETURNING *", "")
        worker.execute(insert, [lease.created_at.replace(tzinfo=None), '["x"]', "success", "worker", None])
    finally:
        engine.run("drop owned by narrow; drop role narrow")
    assert archived(engine, "message_id, second_ending_of") == [(str(message), None), (None, None)]


def test_an_original_worker_that_takes_over_an_expired_lock_of_ours_has_it(
    engine: Connection, queue: LeaseQueue, theirs: Open
) -> None:
    """The original sets no token, but ours becomes invalid, and its own expiry archives."""
    message = queue.publish(["x"])
    (lease,) = queue.claim(1, 60, releases=5)
    let_expire(engine, message)
    worker = theirs()
    row = original.retrieve(worker, message)
    assert row is not None
    assert (queue.finish(lease), queue.renew(lease), queue.release(lease)) == (None, False, False)
    original.finish(worker, row, "success")
    assert archived(engine, "message_id, result::text, handled_by") == [(str(message), "success", "worker")]


def test_4_session_zones_theirs(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    message = queue.publish(["x"])
    assert original.retrieve(theirs("America/New_York"), message, seconds=60)
    with theirs() as cron, cron.transaction():
        cron.execute(original.CLEANUP_COPY)
        cron.execute(original.CLEANUP_DELETE)
    assert [row[1] for row in archived(engine)] == ["lock_expired"]  # a minute early


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_4_session_zones_ours(engine: Connection, queue: LeaseQueue, theirs: Open, zone: str) -> None:
    within = queue.within(theirs(zone))
    within.publish(["x"])
    (lease,) = within.claim(1, 60)
    assert engine.value(f"select abs(extract(epoch from created_at - {UTC_NOW})) < 30 from messages.message")
    assert within.renew(lease, 60)
    assert (within.expire(), queue.expire()) == (Expired(0, 0), Expired(0, 0))
    let_expire(engine, lease.id)
    assert within.expire() == Expired(1, 0)
    (shown,) = archived(engine, f"abs(extract(epoch from archived_at - {UTC_NOW})) < 30, result::text")
    assert shown == (True, "lock_expired")


def test_5_error_masking(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    """The error is reported, and nothing is lost."""
    over, other = two_of_which_one_is_over(engine, queue)
    engine.run("alter table messages.message_archive add constraint full_disk check (handled_by = '') not valid")
    cron = theirs()
    cron.execute(original.CLEANUP)
    with pytest.raises(psycopg.errors.InvalidTransactionTermination) as masked:
        cron.execute("SELECT expired_lock_cleanup();")
    assert "full_disk" not in str(masked.value.diag.message_primary)
    with pytest.raises(DatabaseError, match="full_disk"):
        queue.expire()
    assert waiting(engine) == [over, other]


def test_7_backlog_before_the_start_theirs(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    """The original handles only messages notified after its LISTEN. Ours: test_worker."""
    queue.publish(["x"])
    worker = theirs()
    worker.execute("listen new_message")
    later = queue.publish(["y"])
    assert [each.payload for each in worker.notifies(timeout=60, stop_after=1)] == [str(later)]


def test_8_two_at_once_for_one_message(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    """Both programs share the table: the first to lock the row has it."""
    ids = queue.publish_many(range(60))
    got: dict[str, list[int]] = {"ours": [], "theirs": []}
    barrier = threading.Barrier(2)
    worker = theirs()

    def original_worker() -> None:
        barrier.wait()
        for message in ids:
            if row := original.retrieve(worker, message):
                got["theirs"].append(message)
                original.finish(worker, row, "success")

    def our_worker() -> None:
        barrier.wait()
        while leases := queue.claim(3):
            got["ours"] += [lease.id for lease in leases]
            assert all([queue.finish(lease) for lease in leases])

    threads = [threading.Thread(target=work) for work in (original_worker, our_worker)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(got["ours"] + got["theirs"]) == ids
    assert sorted(archived(engine, "message_id::int, result::text")) == [(message, "success") for message in ids]


def test_9_same_minute_rows(engine: Connection, queue: LeaseQueue, theirs: Open) -> None:
    message = queue.publish(["x"])
    engine.run(f"update messages.message set created_at = date_trunc('minute', {UTC_NOW})")
    cron, listener = theirs(), theirs()
    cron.execute(original.NOTIFY)
    listener.execute("listen new_message")
    cron.execute("SELECT non_locked_notify();")
    assert list(listener.notifies(timeout=0.2)) == []
    assert queue.renotify() == 1
    assert [each.payload for each in listener.notifies(timeout=60, stop_after=1)] == [str(message)]
