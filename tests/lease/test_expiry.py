"""L6, L7: expired locks end or release messages, waiting ones are notified again, from several places at once."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.postgresql import cron_jobs, postgresql
from pgqueue_admin.lease import Expired, LeaseQueue, expiry
from pgqueue_admin.lease.schedules.runner import GRACE
from tests.lease.tables import archived, let_expire, waiting

ALL_OVER = """
update messages.message set lock_expires_at = lock_expires_at - interval '1 day',
    token_expires_at = token_expires_at - interval '1 day'
"""


def test_a_lock_that_is_over_is_archived_with_its_id(queue: LeaseQueue, engine: Connection) -> None:
    over, other = queue.publish_many([["x"], ["y"]])
    queue.claim(2, 60)
    let_expire(engine, over)
    assert queue.expire() == Expired(archived=1, released=0)
    assert waiting(engine) == [other]
    (row,) = archived(engine, "message_id, result::text, handled_by, attempts, queue, kind, details")
    assert row[:6] == (str(over), "lock_expired", "thumbs", 1, '"messages"."message"', "lease")
    assert row[6].startswith("Its lock was over at ")


def test_releasable_lock_returns_until_its_attempts_are_used(
    queue: LeaseQueue, engine: Connection, engine_database: str, connect: Callable[..., Connection]
) -> None:
    listener = connect(engine_database)
    message = queue.publish(["x"])
    listener.listen("new_message")
    for attempt in (1, 2):
        (lease,) = queue.claim(1, 60, releases=2)
        assert lease.attempts == attempt
        let_expire(engine, message)
        assert queue.expire() == Expired(archived=0, released=1)
        assert [each.payload for each in listener.notifications(timeout=60)] == [str(message)]
    queue.claim(1, 60, releases=2)
    let_expire(engine, message)
    assert queue.expire() == Expired(archived=1, released=0)
    assert archived(engine, "attempts") == [(3,)]


def test_late_finish_of_a_releasable_lock_counts(queue: LeaseQueue, engine: Connection) -> None:
    """The work is done; releasing the message would do it twice."""
    queue.publish(1)
    (lease,) = queue.claim(1, 60, releases=1)
    let_expire(engine, lease.id)
    ended = queue.finish(lease)
    assert ended
    assert ended.result == "success"


def test_late_finish_of_an_unreleasable_lock_is_lock_expired(queue: LeaseQueue, engine: Connection) -> None:
    """Whether the finish or the expiry comes first, the outcome is the same."""
    queue.publish(1)
    (lease,) = queue.claim(1, 60)
    let_expire(engine, lease.id)
    ended = queue.finish(lease, "success", "done", archive_success=False)
    assert ended
    assert ended.result == "lock_expired"
    assert archived(engine) == [
        (str(lease.id), "lock_expired", "thumbs", "Ended as success when its lock was over. done")
    ]


def test_many_at_once_do_each_row_once(queue: LeaseQueue, engine: Connection) -> None:
    """Two housekeepers, beat and pg_cron."""
    ids = queue.publish_many(range(500))
    queue.claim(250, 60)
    queue.claim(250, 60, releases=1)
    engine.run(ALL_OVER)
    done: list[Expired] = []
    barrier = threading.Barrier(4)

    def run() -> None:
        barrier.wait()
        while sum(one := queue.expire(40)):
            done.append(one)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(each.archived for each in done) == sum(each.released for each in done) == 250
    assert sorted(int(row[0]) for row in archived(engine)) == ids[:250]
    assert waiting(engine) == ids[250:]


def test_told_again_in_turn_until_each_came_round(
    queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    ids = queue.publish_many(range(25))
    queue.release(queue.claim(1)[0], timedelta(hours=1))  # delayed: nobody could claim it now
    queue.claim(1)
    listener = connect(engine_database)
    listener.listen("new_message")

    def told() -> list[int]:
        number = queue.renotify(10)
        heard: list[int] = []
        while len(heard) < number:
            heard += [int(each.payload) for each in listener.notifications(timeout=60)]
        return heard

    rounds = [told() for _ in range(3)]
    assert [len(each) for each in rounds] == [10, 10, 10]
    assert rounds[0] + rounds[1] + rounds[2][:3] == ids[2:]
    assert rounds[2][3:] == ids[2:9]


def test_a_minute_tells_a_thousand(
    queue: LeaseQueue, engine: Connection, engine_database: str, connect: Callable[..., Connection]
) -> None:
    """The batch of beat, of the command and of pg_cron's job, unless another number is given."""
    ids = queue.publish_many(range(2_300))
    (job,) = [each for each in cron_jobs.jobs(engine, postgresql(), GRACE) if each.name.endswith("notify again")]
    rounds: list[Callable[[], object]] = [
        queue.renotify,
        lambda: expiry.end_and_renotify(engine, postgresql()),
        lambda: engine.run(job.command),
    ]
    listener = connect(engine_database)
    heard: list[int] = []
    for number, tell in enumerate(rounds, 1):
        listener.listen("new_message")
        tell()
        engine.run(f"notify new_message, 'end of {number}'")
        while not heard or heard[-1] != -number:
            for each in listener.notifications(timeout=60):
                heard.append(-number if each.payload.startswith("end") else int(each.payload))
    told = [each for each in heard if each > 0]
    assert [heard.index(-1), heard.index(-2), heard.index(-3)] == [1_000, 2_001, 3_002]
    assert told == [*ids, *ids[:700]]


def test_concurrent_renotify_notifies_nothing(
    queue: LeaseQueue, engine_database: str, connect: Callable[..., Connection]
) -> None:
    queue.publish(1)
    other = connect(engine_database)
    with other.transaction():
        other.run("select after from messages.notify_round for update")
        assert queue.renotify() == 0
    assert queue.renotify() == 1


@pytest.mark.parametrize("number", [0, 1])
def test_without_workers_nothing_is_lost(queue: LeaseQueue, engine: Connection, number: int) -> None:
    """L7."""
    ids = queue.publish_many(range(number))
    for _ in range(3):
        assert queue.expire() == Expired(0, 0)
        assert queue.renotify() == number
    assert waiting(engine) == ids
