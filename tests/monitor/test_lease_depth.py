"""The lease queue is measured like every other: each state is counted by its index, and gaps are reported."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.lease import LeaseQueue
from pgqueue_admin.monitor import depth, discovery
from pgqueue_admin.monitor.depth_result import QueueDepth
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.monitor.sampler import QueueSample, Sampler
from tests.archive.test_schema import ORIGINAL

Connect = Callable[..., Connection]
LEASE = Address("messages", "message")


@pytest.fixture
def engine(engine_database: str, connect: Connect) -> Connection:
    return connect(engine_database)


@pytest.fixture
def sampler(engine_database: str, connect: Connect) -> Iterator[Sampler]:
    sampler = Sampler(lambda: connect(engine_database, read_only=True), ["messages"], cap=1000)
    yield sampler
    sampler.close()


def table_of(connection: Connection) -> QueueTable:
    table = discovery.find_one(connection, LEASE)
    assert table is not None
    assert table.kind is TableKind.LEASE
    return table


def measured(connection: Connection, cap: int = depth.CAP) -> QueueDepth:
    return depth.measure(connection, table_of(connection), cap=cap)


def looked(sampler: Sampler) -> QueueSample:
    return next(each for each in sampler.sample() if each.table.address == LEASE)


def test_each_message_is_in_one_state(queue: LeaseQueue, reading: Connection) -> None:
    queue.publish_many(range(7))
    over, kept, held = queue.claim(3, lock_for=60)
    queue.renew(over, 1e-6)
    queue.release(kept, after=timedelta(hours=1))
    assert held.id
    seen = measured(reading)
    assert (seen.ready, seen.in_flight, seen.expired, seen.delayed, seen.depth) == (4, 1, 1, 1, 6)
    assert (seen.how, seen.delayed_how) == ("counted", "counted")
    assert seen.next_due_at is not None
    assert timedelta(minutes=59) < seen.next_due_at - seen.at <= timedelta(hours=1)


def test_looking_locks_nothing_and_waits_for_nobody(queue: LeaseQueue, engine: Connection, reading: Connection) -> None:
    queue.publish(1)
    with engine.transaction():
        engine.run("update messages.message set lock_expires_at = now() at time zone 'utc' + interval '1 min'")
        assert (measured(reading).ready, measured(reading).in_flight) == (1, 0)
    assert (measured(reading).ready, measured(reading).in_flight) == (0, 1)


def test_zones_of_sessions_move_no_lock(queue: LeaseQueue, engine_database: str, connect: Connect) -> None:
    queue.publish_many([1, 2])
    queue.claim(1, lock_for=60)
    for zone in ("America/New_York", "Asia/Kathmandu"):
        session = connect(engine_database)
        session.run(f"set timezone = '{zone}'")
        seen = measured(session)
        assert (seen.ready, seen.in_flight, seen.expired) == (1, 1, 0)


def test_past_the_cap_it_is_an_estimate_and_says_so(engine: Connection, queue: LeaseQueue) -> None:
    engine.run("insert into messages.message (message) select to_jsonb(i) from generate_series(1, 3000) i")
    queue.claim(10)
    seen = measured(engine, cap=1000)
    assert seen.how == "estimate"
    assert seen.ready == pytest.approx(2990, rel=0.05)
    assert seen.in_flight == 10


def test_too_few_to_tell_how_many_are_at_least_the_cap(engine: Connection) -> None:
    engine.run("insert into messages.message (id, message) select i * 100000, '1' from generate_series(1, 1500) i")
    seen = measured(engine, cap=1000)
    assert (seen.ready, seen.how) == (1000, "capped")


def test_the_oldest_waits_since_it_could_be_claimed(queue: LeaseQueue, engine: Connection, sampler: Sampler) -> None:
    queue.publish(1)
    engine.run("update messages.message set created_at = created_at - interval '3 days'")  # as if adopted just now
    sample = looked(sampler)
    assert sample.oldest_how == "exact"
    assert sample.oldest_at is not None
    assert sample.at - sample.oldest_at >= timedelta(days=3)
    (lease,) = queue.claim(1)
    queue.release(lease)
    sample = looked(sampler)
    assert sample.oldest_at is not None
    assert sample.at - sample.oldest_at < timedelta(minutes=1)


def test_in_and_out_are_counted_whatever_is_kept_for_later(queue: LeaseQueue, sampler: Sampler) -> None:
    queue.publish_many(range(10))
    looked(sampler)
    queue.publish_many(range(6))
    first, second, third = queue.claim(3)
    queue.finish(first)
    queue.finish(second)
    queue.release(third, after=3600)
    sample = looked(sampler)
    assert sample.in_per_second
    assert sample.out_per_second
    assert sample.in_per_second / sample.out_per_second == pytest.approx(3)


def test_claim_is_a_departure_and_ending_an_expired_lock_is_not(queue: LeaseQueue, sampler: Sampler) -> None:
    queue.publish_many(range(5))
    (lease,) = queue.claim(1)
    queue.renew(lease, 1e-6)
    assert looked(sampler).last_departure_at is None
    queue.expire()
    assert looked(sampler).last_departure_at is None
    queue.claim(1)
    assert looked(sampler).last_departure_at is not None


def test_a_backlog_that_is_worked_on_has_a_rate_out(engine: Connection, queue: LeaseQueue, sampler: Sampler) -> None:
    engine.run("insert into messages.message (message) select to_jsonb(i) from generate_series(1, 5000) i")
    before = looked(sampler)
    for lease in queue.claim(400):
        queue.finish(lease)
    after = looked(sampler)
    assert after.out_per_second == pytest.approx(400 / (after.at - before.at).total_seconds(), rel=0.2)


def test_a_table_of_the_original_is_measured_by_its_own_columns(connection: Connection) -> None:
    connection.run(ORIGINAL)
    connection.run("insert into messages.message (message) select '1' from generate_series(1, 4)")
    connection.run(
        "update messages.message set lock_expires_at = now() at time zone 'utc' + interval '1 min' where id = 1"
    )
    connection.run(
        "update messages.message set lock_expires_at = now() at time zone 'utc' - interval '1 min' where id = 2"
    )
    seen = measured(connection)
    assert (seen.ready, seen.in_flight, seen.expired, seen.delayed) == (2, 1, 1, 0)
    assert seen.oldest_how == "estimate"


def test_its_numbers_end_with_the_columns_type(reading: Connection) -> None:
    assert table_of(reading).seq_end == 2**31 - 1
