"""C2: what the sampler process writes down, and that neither database's absence ends it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from pgqueue_admin.console.board import cells
from pgqueue_admin.console.board import rows as board
from pgqueue_admin.console.queues import columns
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.dialects.postgresql import dialect
from pgqueue_admin.monitor import judge
from pgqueue_admin.records import endpoints, notify, samples
from pgqueue_admin.records.models import Endpoint, LatestSample, Process, Queue, Sample, SmallestTtbr
from pgqueue_admin.workers.roster import Roster
from pgqueue_admin.workers.sampling import MOST_STATEMENTS, Sampling
from tests.monitor.tables import cut_sessions, fill, make
from tests.monitor.test_sampler import Clock
from tests.waiting import gathered, until

Connect = Callable[..., Connection]


@pytest.fixture
def queues(console_database: str, connect: Connect) -> Connection:
    return connect(console_database)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sampling(console_database: str, clock: Clock) -> Iterator[Sampling]:
    sampling = Sampling(monotonic=clock)
    yield sampling
    sampling.close()


def latest(table: str = "Q") -> LatestSample:
    return LatestSample.objects.get(queue__table=table)


def test_queues_are_written_with_their_targets(queues: Connection, sampling: Sampling) -> None:
    for name in ("Q", "error", "audit"):
        make(queues, name)
    sampling.turn()
    targets = {q.table: (q.kind, q.target_age_seconds, q.target_dead) for q in Queue.objects.filter(schema="public")}
    assert targets == {"Q": ("input", 60, 0), "error": ("error", None, 0), "audit": ("audit", None, None)}


def test_targets_that_are_set_while_it_is_written_down_stay(queues: Connection, sampling: Sampling) -> None:
    make(queues)
    sampling.turn()
    row = Queue.objects.get(table="Q")
    Queue.objects.update(target_depth=7)
    Roster()._take(row, {"endpoint": "Q"})
    assert list(Queue.objects.values_list("endpoint", "target_depth")) == [("Q", 7)]


def test_a_queue_found_before_its_endpoint_is_linked_with_it(
    queues: Connection, sampling: Sampling, clock: Clock
) -> None:
    make(queues)
    sampling.turn()
    endpoints.create("Q", {"desired_processes": 1}, "ana", "command")
    assert owner("Q") == ("Q", 1)  # at once: nobody waits for the next look at the catalog
    Queue.objects.update(endpoint="")  # as versions before left it
    clock.now += 100
    sampling.turn()
    assert owner("Q") == ("Q", 1)
    Endpoint.objects.all().delete()
    clock.now += 100
    sampling.turn()
    assert owner("Q") == ("", None)


def owner(table: str) -> tuple[str, int | None]:
    """The endpoint that a page names for a queue, and how many processes of it are wanted."""
    row = next(each for each in board.load() if each.queue.table == table)
    return row.queue.endpoint, row.team.want if row.team else None


def test_targets_that_somebody_set_stay(queues: Connection, sampling: Sampling, clock: Clock) -> None:
    address = make(queues)
    sampling.turn()
    Queue.objects.filter(table="Q").update(target_age_seconds=5)
    fill(queues, address, 1, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    clock.now += 100
    sampling.turn()
    queue = Queue.objects.get(table="Q")
    assert (queue.kind, queue.target_age_seconds) == ("error", 5)


def test_a_queue_is_gone_and_back(queues: Connection, sampling: Sampling, clock: Clock) -> None:
    fill(queues, make(queues), 3)
    sampling.turn()
    queues.run('drop table "Q"')
    clock.now += 10
    sampling.turn()
    assert Queue.objects.get(table="Q").gone_since
    assert latest().depth == 3  # the last that was seen
    make(queues)
    clock.now += 10
    sampling.turn()
    assert Queue.objects.get(table="Q").gone_since is None
    assert latest().depth == 0


def test_each_look_is_announced(queues: Connection, sampling: Sampling) -> None:
    make(queues)
    with notify.listen(notify.SAMPLE) as listener:
        sampling.turn()
        fill(queues, Address("public", "Q"), 7)
        sampling.turn()
        heard = gathered(lambda: [int(n.payload) for n in listener.notifications(0.1)], lambda found: len(found) == 2)
    assert heard == sorted(heard)
    assert (latest().depth, latest().ready, latest().how) == (7, 7, "counted")


def test_an_unchanged_queue_only_moves_on_in_time(queues: Connection, sampling: Sampling) -> None:
    fill(queues, make(queues), 2)
    sampling.turn()
    sampling.turn()
    before = latest()
    sampling.turn()
    after = latest()
    assert after.at > before.at
    assert after.changed_at == before.changed_at
    assert after.depth == 2


def test_dead_ones_are_counted_where_they_lie(queues: Connection, sampling: Sampling) -> None:
    make(queues)
    fill(queues, make(queues, "error"), 4)
    sampling.turn()
    assert (latest().dead, latest("error").dead) == (0, 4)


def test_history_every_ten_seconds(queues: Connection, sampling: Sampling) -> None:
    fill(queues, make(queues), 2)
    sampling.turn()
    sampling.turn()
    (sample,) = Sample.objects.filter(queue__table="Q")
    assert (sample.depth, sample.ready) == (2, 2)
    assert samples.history(sample.queue, timedelta(minutes=1), sample.at) == [sample]


def test_thinning_keeps_one_a_minute(queues: Connection, sampling: Sampling) -> None:
    make(queues)
    sampling.turn()
    newest = Sample.objects.get(queue__table="Q")
    minute = newest.at.replace(second=0, microsecond=0)
    for age in [*(timedelta(hours=3, seconds=s) for s in range(0, 120, 10)), timedelta(days=9), timedelta(hours=1)]:
        Sample.objects.create(queue=newest.queue, at=minute - age)
    assert samples.thin(newest.at) == 9 + 1
    assert samples.thin(newest.at) == 0
    assert Sample.objects.filter(queue=newest.queue).count() == 1 + 3 + 1


def test_the_smallest_ttbr_stays_when_the_queue_is_empty(queues: Connection, sampling: Sampling, clock: Clock) -> None:
    """T16"""
    address = make(queues)
    for span in ("00:00:20", "00:00:10", "20.00:00:00"):
        headers = f'{{"NServiceBus.EnclosedMessageTypes":"Quote, S","NServiceBus.TimeToBeReceived":"{span}"}}'
        fill(queues, address, 1, headers=f"'{headers}'")
    sampling.turn()
    queues.run('delete from "Q"')
    clock.now += 100
    sampling.turn()
    (ttbr,) = SmallestTtbr.objects.all()
    assert (ttbr.queue.table, ttbr.message_type, ttbr.ttbr_ms) == ("Q", "Quote", 10_000)


def test_its_heartbeat(queues: Connection, sampling: Sampling) -> None:
    sampling.turn()
    process = Process.objects.get(role="sampler")
    assert (process.state, process.last_error) == ("running", "")


def test_what_stays_planned_is_not_composed_anew() -> None:
    """It would be another statement to its session, and be planned at each look beside the one that nobody asks."""
    assert (dialect._composed.cache_info().maxsize or 0) > MOST_STATEMENTS


def test_only_one_samples_a_console(queues: Connection, sampling: Sampling, clock: Clock) -> None:
    make(queues)
    sampling.turn()
    second = Sampling(monotonic=clock)
    Queue.objects.all().delete()
    second.turn()
    assert not Queue.objects.exists()
    sampling.close()  # its session ends a moment later, and the lock with it

    def found() -> bool:
        second.turn()
        return Queue.objects.filter(table="Q").exists()

    until(found)
    second.close()


def test_an_unreadable_queue_keeps_its_figures_and_says_why(
    queues: Connection, console_database: str, connect: Connect, sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "HISTORY_EVERY", timedelta(0))
    fill(queues, make(queues), 3)
    sampling.turn()
    before = latest()
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.turn()
    assert "too slow" in latest().error
    assert (latest().depth, latest().at) == (3, before.at)
    told = Sample.objects.order_by("at").values_list("depth", flat=True)
    assert list(told) == [3, None], "history knows of the look that was in vain"
    sampling.turn()
    assert latest().error == ""


def test_a_queue_that_may_not_be_read_shows_no_age_and_no_trend(
    queues: Connection, console_database: str, connect: Connect, sampling: Sampling
) -> None:
    fill(queues, make(queues), 3)
    sampling.turn()
    LatestSample.objects.update(oldest_at=latest().at - timedelta(minutes=10))
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.turn()
    (row,) = [each for each in board.load() if each.queue.table == "Q"]
    assert (row.age, row.state, row.verdict.why) == (None, "warn", "unreadable")
    assert "data-since" not in columns.oldest(row).attributes + cells.oldest(row)
    assert columns.trend(row).text == "cannot be read"
    assert row.consumers.words == "not known"


def test_a_quiet_queue_that_can_be_read_again_no_longer_says_that_it_cannot(
    queues: Connection, console_database: str, connect: Connect, sampling: Sampling
) -> None:
    fill(queues, make(queues), 3)
    for _ in range(3):
        sampling.turn()
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.turn()
    before = latest()
    sampling.turn()
    assert (before.error != "", latest().error) == (True, "")
    assert latest().at > before.at


def test_a_queue_that_could_never_be_read_is_not_within_target(
    queues: Connection, console_database: str, connect: Connect, sampling: Sampling
) -> None:
    """Where the role may not read a table there is never a first sample."""
    fill(queues, make(queues), 3)
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.turn()
        sampling.turn()
    assert ("too slow" in latest().error, latest().depth, latest().ready) == (True, None, None)
    verdict = judge.against(Queue.objects.get(table="Q"), latest(), latest().at)
    assert (verdict.state, verdict.why) == ("warning", "unreadable")
    sampling.turn()
    assert (latest().error, latest().depth) == ("", 3)


def test_the_queues_database_is_down(queues: Connection, sampling: Sampling) -> None:
    fill(queues, make(queues), 3)
    sampling.turn()
    before = latest()
    with refused(queues, sampling):
        sampling.turn()
        assert latest().error.startswith("The database does not answer.")
        assert (latest().depth, latest().at) == (3, before.at)
    sampling.turn()
    assert (latest().error, latest().depth) == ("", 3)
    assert latest().at > before.at


def test_the_consoles_database_is_down(queues: Connection, sampling: Sampling) -> None:
    """Every session of ours there is ended at once; the next looks are written again."""
    address = make(queues)
    sampling.turn()
    cut_sessions(queues)
    fill(queues, address, 5)
    sampling.turn()
    sampling.turn()
    assert latest().depth == 5


@contextmanager
def refused(queues: Connection, sampling: Sampling) -> Iterator[None]:
    """The sampler's session is cut, and while this lasts no new one is let in."""

    def down() -> Connection:
        raise DatabaseDown("connection refused")

    cut_sessions(queues, "pgqueue sampler reads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling._sampler, "_connect", down)
        yield
