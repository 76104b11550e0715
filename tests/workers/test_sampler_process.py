"""C2: what the sampler process stores; it survives the loss of either database."""

from datetime import timedelta

import pytest

from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import dialect
from pgqueue_admin.models import Endpoint, MinimumTtbr, Process, Queue, Sample, notify, samples
from pgqueue_admin.services import endpoints
from pgqueue_admin.workers.sampler.sampler_process import MOST_STATEMENTS, SamplerProcess, rest
from pgqueue_admin.workers.sampler.sampler_store import QueueRegistry
from tests.monitor.tables import fill, make
from tests.monitor.test_sampler import Clock
from tests.waiting import gathered, until
from tests.workers.sampled import latest


def test_queues_are_written_with_their_targets(tables: Connection, sampling: SamplerProcess) -> None:
    for name in ("Q", "error", "audit"):
        make(tables, name)
    sampling.run_once()
    targets = {q.table: (q.kind, q.target_age_seconds, q.target_dead) for q in Queue.objects.filter(schema="public")}
    assert targets == {"Q": ("input", 60, 0), "error": ("error", None, 0), "audit": ("audit", None, None)}


def test_targets_that_are_set_while_it_is_written_down_stay(tables: Connection, sampling: SamplerProcess) -> None:
    make(tables)
    sampling.run_once()
    row = Queue.objects.get(table="Q")
    Queue.objects.update(target_depth=7)
    QueueRegistry()._take(row, {"endpoint": "Q"})
    assert list(Queue.objects.values_list("endpoint", "target_depth")) == [("Q", 7)]


def test_a_queue_found_before_its_endpoint_is_linked_with_it(
    tables: Connection, sampling: SamplerProcess, clock: Clock
) -> None:
    make(tables)
    sampling.run_once()
    endpoints.create("Q", {"desired_processes": 1}, "ana", "command")
    assert owner("Q") == ("Q", 1)  # at once, without waiting for the next catalog read
    Queue.objects.update(endpoint="")  # as earlier versions left it
    clock.now += 100
    sampling.run_once()
    assert owner("Q") == ("Q", 1)
    Endpoint.objects.all().delete()
    clock.now += 100
    sampling.run_once()
    assert owner("Q") == ("", None)


def owner(table: str) -> tuple[str, int | None]:
    """The endpoint that a page names for a queue, and its desired number of processes."""
    row = next(each for each in queue_rows.load() if each.queue.table == table)
    return row.queue.endpoint, row.team.want if row.team else None


def test_targets_that_somebody_set_stay(tables: Connection, sampling: SamplerProcess, clock: Clock) -> None:
    address = make(tables)
    sampling.run_once()
    Queue.objects.filter(table="Q").update(target_age_seconds=5)
    fill(tables, address, 1, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    clock.now += 100
    sampling.run_once()
    queue = Queue.objects.get(table="Q")
    assert (queue.kind, queue.target_age_seconds) == ("error", 5)


def test_a_queue_is_gone_and_back(tables: Connection, sampling: SamplerProcess, clock: Clock) -> None:
    address = make(tables)
    sampling.run_once()
    fill(tables, address, 3)
    sampling.run_once()
    assert latest().oldest_how == "exact"
    tables.run('drop table "Q"')
    clock.now += 10
    sampling.run_once()
    assert Queue.objects.get(table="Q").gone_since
    assert latest().depth == 3  # the last sample
    fill(tables, make(tables), 4)
    clock.now += 10
    sampling.run_once()
    assert Queue.objects.get(table="Q").gone_since is None
    assert (latest().depth, latest().oldest_how) == (4, "least")  # its seq 1 is not the message dated before


def test_queue_kind_returns_to_input_after_a_failed_message_has_left(
    tables: Connection, sampling: SamplerProcess, clock: Clock
) -> None:
    """A message moved back by hand keeps the headers of a failed one."""
    address = make(tables)
    fill(tables, address, 1, headers="""'{"NServiceBus.FailedQ":"x"}'""")
    sampling.run_once()
    tables.run('delete from "Q"')
    fill(tables, address, 500)
    for _ in range(13):
        clock.now += 5
        sampling.run_once()
    queue = Queue.objects.get(table="Q")
    assert (queue.kind, queue.target_age_seconds, latest().ready, latest().dead) == ("input", 60, 500, 0)


def test_each_look_is_announced(tables: Connection, sampling: SamplerProcess) -> None:
    make(tables)
    with notify.listen(notify.SAMPLE) as listener:
        sampling.run_once()
        fill(tables, Address("public", "Q"), 7)
        sampling.run_once()
        heard = gathered(lambda: [int(n.payload) for n in listener.notifications(0.1)], lambda found: len(found) == 2)
    assert heard == sorted(heard)
    assert (latest().depth, latest().ready, latest().how) == (7, 7, "counted")


def test_an_unchanged_queue_only_moves_on_in_time(tables: Connection, sampling: SamplerProcess) -> None:
    fill(tables, make(tables), 2)
    sampling.run_once()
    sampling.run_once()
    before = latest()
    sampling.run_once()
    after = latest()
    assert after.at > before.at
    assert after.changed_at == before.changed_at
    assert after.depth == 2


def test_dead_ones_are_counted_where_they_lie(tables: Connection, sampling: SamplerProcess) -> None:
    make(tables)
    fill(tables, make(tables, "error"), 4)
    sampling.run_once()
    assert (latest().dead, latest("error").dead) == (0, 4)


def test_history_every_ten_seconds(tables: Connection, sampling: SamplerProcess) -> None:
    fill(tables, make(tables), 2)
    sampling.run_once()
    sampling.run_once()
    (sample,) = Sample.objects.filter(queue__table="Q")
    assert (sample.depth, sample.ready) == (2, 2)
    assert samples.history(sample.queue, timedelta(minutes=1), sample.at) == [sample]


def test_thinning_keeps_one_a_minute(tables: Connection, sampling: SamplerProcess) -> None:
    make(tables)
    sampling.run_once()
    newest = Sample.objects.get(queue__table="Q")
    minute = newest.at.replace(second=0, microsecond=0)
    for age in [*(timedelta(hours=3, seconds=s) for s in range(0, 120, 10)), timedelta(days=9), timedelta(hours=1)]:
        Sample.objects.create(queue=newest.queue, at=minute - age)
    assert samples.thin(newest.at) == 9 + 1
    assert samples.thin(newest.at) == 0
    assert Sample.objects.filter(queue=newest.queue).count() == 1 + 3 + 1


def test_the_smallest_ttbr_stays_when_the_queue_is_empty(
    tables: Connection, sampling: SamplerProcess, clock: Clock
) -> None:
    """T16"""
    address = make(tables)
    for span in ("00:00:20", "00:00:10", "20.00:00:00", "-00:00:05", "00:00:00"):
        headers = f'{{"NServiceBus.EnclosedMessageTypes":"Quote, S","NServiceBus.TimeToBeReceived":"{span}"}}'
        fill(tables, address, 1, headers=f"'{headers}'")
    sampling.run_once()
    tables.run('delete from "Q"')
    clock.now += 100
    sampling.run_once()
    (ttbr,) = MinimumTtbr.objects.all()
    assert (ttbr.queue.table, ttbr.message_type, ttbr.ttbr_ms) == ("Q", "Quote", 10_000)


def test_types_behind_the_first_ones_are_seen_while_a_queue_drains(
    tables: Connection, sampling: SamplerProcess, clock: Clock
) -> None:
    """T16: nothing is sent meanwhile, so the tail does not change."""
    address = make(tables)
    fill(tables, address, 60)
    quote = '{"NServiceBus.EnclosedMessageTypes":"Quote, S","NServiceBus.TimeToBeReceived":"00:00:05"}'
    fill(tables, address, 5, headers=f"'{quote}'")
    sampling.run_once()
    assert not MinimumTtbr.objects.exists()
    tables.run('delete from "Q" where seq <= 60')
    clock.now += 100
    sampling.run_once()
    assert MinimumTtbr.objects.get().message_type == "Quote"


def test_sampler_reports_its_heartbeat(tables: Connection, sampling: SamplerProcess) -> None:
    sampling.run_once()
    process = Process.objects.get(role="sampler")
    assert (process.state, process.last_error) == ("running", "")


def test_composed_statements_fit_into_their_cache() -> None:
    """A recomposed statement is a new one to its session, and would be planned at each look beside an unused one."""
    assert (dialect._composed.cache_info().maxsize or 0) > MOST_STATEMENTS


def test_only_one_samples_a_console(tables: Connection, sampling: SamplerProcess, clock: Clock) -> None:
    make(tables)
    sampling.run_once()
    second = SamplerProcess(monotonic=clock)
    Queue.objects.all().delete()
    second.run_once()
    assert not Queue.objects.exists()
    sampling.close()  # its session ends a moment later, releasing the lock

    def found() -> bool:
        second.run_once()
        return Queue.objects.filter(table="Q").exists()

    until(found)
    second.close()


# The pause between two turns.
@pytest.mark.parametrize(("spent", "rested"), [(0.2, 0.8), (0.5, 0.5), (3.0, 3.0), (22.0, 5.0)])
def test_a_turn_that_hung_is_not_rested_from_as_long_again(spent: float, rested: float) -> None:
    """After a 20 s standstill, the sampler noticed the database's return 20 s late."""
    assert rest(1.0, spent) == pytest.approx(rested)


def test_samples_that_are_wanted_seldom_stay_seldom() -> None:
    assert rest(10.0, 0.5) == pytest.approx(9.5)
