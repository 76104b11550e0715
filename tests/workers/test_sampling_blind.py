"""A queue that cannot be read, or a lost database: figures stay, the reason is shown, and sampling continues."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from pgqueue_admin.console.queue_row import cells
from pgqueue_admin.console.queue_row import rows as queue_rows
from pgqueue_admin.console.queues import columns
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseDown
from pgqueue_admin.models import LatestSample, Queue, Sample, samples
from pgqueue_admin.monitor import targets
from pgqueue_admin.workers.sampler.sampler_process import SamplerProcess
from tests.monitor.tables import cut_sessions, fill, make
from tests.workers.sampled import Connect, latest


def test_an_unreadable_queue_keeps_its_figures_and_says_why(
    tables: Connection,
    console_database: str,
    connect: Connect,
    sampling: SamplerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples, "HISTORY_EVERY", timedelta(0))
    fill(tables, make(tables), 3)
    sampling.run_once()
    before = latest()
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.run_once()
    assert "holds a lock that this waited for" in latest().error
    assert (latest().depth, latest().at) == (3, before.at)
    told = Sample.objects.order_by("at").values_list("depth", flat=True)
    assert list(told) == [3, None], "history knows of the look that was in vain"
    sampling.run_once()
    assert latest().error == ""


def test_a_queue_that_may_not_be_read_shows_no_age_and_no_trend(
    tables: Connection, console_database: str, connect: Connect, sampling: SamplerProcess
) -> None:
    fill(tables, make(tables), 3)
    sampling.run_once()
    LatestSample.objects.update(oldest_at=latest().at - timedelta(minutes=10))
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.run_once()
    (row,) = [each for each in queue_rows.load() if each.queue.table == "Q"]
    assert (row.age, row.state, row.verdict.why) == (None, "warn", "unreadable")
    assert "data-since" not in columns.oldest(row).attributes + cells.oldest(row)
    assert columns.trend(row).text == "cannot be read"
    assert row.consumers.words == "not known"


def test_readable_quiet_queue_clears_its_error(
    tables: Connection, console_database: str, connect: Connect, sampling: SamplerProcess
) -> None:
    fill(tables, make(tables), 3)
    for _ in range(3):
        sampling.run_once()
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.run_once()
    before = latest()
    sampling.run_once()
    assert (before.error != "", latest().error) == (True, "")
    assert latest().at > before.at


def test_a_queue_that_could_never_be_read_is_not_within_target(
    tables: Connection, console_database: str, connect: Connect, sampling: SamplerProcess
) -> None:
    """If the role may not read a table, there is never a first sample."""
    fill(tables, make(tables), 3)
    other = connect(console_database)
    with other.transaction():
        other.run('lock table "Q" in access exclusive mode')
        sampling.run_once()
        sampling.run_once()
    assert ("holds a lock that this waited for" in latest().error, latest().depth, latest().ready) == (True, None, None)
    verdict = targets.against(Queue.objects.get(table="Q"), latest(), latest().at)
    assert (verdict.state, verdict.why) == ("warning", "unreadable")
    sampling.run_once()
    assert (latest().error, latest().depth) == ("", 3)


def test_the_queues_database_is_down(tables: Connection, sampling: SamplerProcess) -> None:
    fill(tables, make(tables), 3)
    sampling.run_once()
    before = latest()
    with refused(tables, sampling):
        sampling.run_once()
        assert latest().error.startswith("The database does not answer.")
        assert (latest().depth, latest().at) == (3, before.at)
    sampling.run_once()
    assert (latest().error, latest().depth) == ("", 3)
    assert latest().at > before.at


def test_the_consoles_database_is_down(tables: Connection, sampling: SamplerProcess) -> None:
    """All our sessions there are terminated at once; later samples are stored again."""
    address = make(tables)
    sampling.run_once()
    cut_sessions(tables)
    fill(tables, address, 5)
    sampling.run_once()
    sampling.run_once()
    assert latest().depth == 5


@contextmanager
def refused(tables: Connection, sampling: SamplerProcess) -> Iterator[None]:
    """Cut the sampler's session and refuse new ones meanwhile."""

    def down() -> Connection:
        raise DatabaseDown("connection refused")

    cut_sessions(tables, "pgqueue sampler reads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling._sampler, "_connect", down)
        yield
