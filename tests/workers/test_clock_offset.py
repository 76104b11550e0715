"""Samples of a server whose clock differs from the console's."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import environ
import pytest

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import LatestSample, Sample, database_clock
from pgqueue_admin.monitor.depth_result import QueueDepth
from pgqueue_admin.monitor.queue_history import RememberedDepth
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.monitor.sampler import QueueSample
from pgqueue_admin.transport.tables.table_queue import TableQueue
from pgqueue_admin.workers.sampler.clock_offset import ClockOffset
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests import server_clock
from tests.console.sampled import elsewhere
from tests.monitor.tables import make

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC)
Connect = Callable[..., Connection]
SECOND = timedelta(seconds=1)


def test_the_time_that_asking_takes_is_no_difference() -> None:
    ahead = ClockOffset()
    ahead.note(NOON, NOON + SECOND, NOON + 2 * SECOND)
    ahead.note(NOON, NOON + 2.4 * SECOND, NOON + 2 * SECOND)
    assert ahead.by == timedelta()


def test_offset_stays_while_later_samples_allow_it() -> None:
    ahead = ClockOffset()
    ahead.note(NOON, NOON + 61 * SECOND, NOON + 2 * SECOND)
    ahead.note(NOON, NOON + 60.2 * SECOND, NOON + 0.4 * SECOND)
    assert ahead.by == 60 * SECOND
    ahead.note(NOON, NOON - 30 * SECOND, NOON)
    assert ahead.by == -30 * SECOND


@pytest.mark.parametrize(("at", "by"), [(FIRST, SECOND), (LAST, -SECOND)])
def test_the_ends_of_the_calendar_stay_where_they_are(at: datetime, by: timedelta) -> None:
    """One application's default(DateTimeOffset) must not keep all samples from being stored."""
    table, ahead = QueueTable(Address("public", "Sales"), TableKind.INPUT, "", {}), ClockOffset()
    ahead.note(NOON, NOON + by, NOON)
    (moved,) = ahead.taken_off([QueueSample(table, NOON + by, QueueDepth(NOON, next_due_at=at), None, oldest_at=at)])
    assert moved.depth is not None
    assert (moved.at, moved.oldest_at, moved.depth.next_due_at) == (NOON, at, at)
    ahead.note(NOON, NOON - by, NOON)
    assert ahead.put_on(RememberedDepth(oldest_at=at)) == RememberedDepth(oldest_at=at)


@pytest.fixture
def hour_ahead(
    console_database: str, queues: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connection]:
    """A queue database whose server's clock is an hour ahead."""
    connection = connect(queues)
    ahead = server_clock.only_in(connection, "interval '1 hour'", "interval '0'")
    server_clock.tells(monkeypatch, f"(clock_timestamp() + {ahead})")
    with elsewhere("queues", **environ.Env.db_url_config(queues)):
        yield connection


def test_ages_are_right_all_the_same(hour_ahead: Connection) -> None:
    TableQueue(postgresql(), Address("public", "Sales")).create(hour_ahead)
    for _ in range(2):  # the second sampler continues from what the first stored
        sampling = SamplerProcess()
        sampling.run_once()
        hour_ahead.run("insert into \"Sales\" (id, headers, body) values (gen_random_uuid(), '{}', '{}')")
        sampling.run_once()
        sampling.close()
        latest = LatestSample.objects.get(queue__table="Sales")
        assert latest.oldest_at is not None
        for instant in (latest.at, latest.changed_at, latest.oldest_at):
            assert abs(database_clock.now() - instant) < timedelta(minutes=1)


def test_a_clock_that_steps_back_leaves_no_hole_in_history(
    tables: Connection, sampling: SamplerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two hours, as after a switch to a lagging standby or to a copy of the machine."""
    tables.run("create table public.step as select interval '2 hours' as by")
    server_clock.tells(monkeypatch, "(clock_timestamp() + (select by from public.step))")
    monkeypatch.setattr(database_clock, "ASK_EVERY", 0.0)
    monkeypatch.setattr(database_clock, "now", database_clock.DatabaseClock().now)
    make(tables)
    sampling.run_once()
    before = Sample.objects.get(queue__table="Q").at
    tables.run("update public.step set by = interval '0'")
    sampling.run_once()
    assert Sample.objects.filter(queue__table="Q", at__lt=before).exists()
