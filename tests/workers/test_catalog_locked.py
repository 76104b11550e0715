"""The queue database refuses to read its catalog: the reason is shown, and the read is repeated without haste."""

import logging
from collections.abc import Callable, Iterator

import environ
import pytest

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import LatestSample, Process, Queue
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.sampler import FIND_EVERY
from pgqueue_admin.workers.sampler.sampler_process import HEARTBEAT_EVERY, SamplerProcess
from tests import server_clock
from tests.console.sampled import elsewhere
from tests.monitor.tables import fill, make
from tests.monitor.test_sampler import Clock

Connect = Callable[..., Connection]


@pytest.fixture
def apart(console_database: str, queues: str, connect: Connect) -> Iterator[Connection]:
    """A separate queue database: locking its catalog does not block the console."""
    with elsewhere("queues", **environ.Env.db_url_config(queues)):
        yield connect(queues)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sampling(apart: Connection, clock: Clock) -> Iterator[SamplerProcess]:
    clock.now = 100.0
    sampling = SamplerProcess(monotonic=clock)
    yield sampling
    sampling.close()


@pytest.fixture
def looks(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times of catalog reads."""
    when: list[float] = []
    asked = discovery.find

    def noted(*args: object) -> object:
        when.append(clock.now)
        return asked(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(discovery, "find", noted)
    return when


def told() -> str:
    return Process.objects.get(role="sampler").last_error


def test_a_new_sampler_says_why_it_is_blind(
    apart: Connection, sampling: SamplerProcess, clock: Clock, looks: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    fill(apart, make(apart), 3)
    with apart.transaction():
        apart.run("lock table pg_sequence in access exclusive mode")
        for _ in range(4):
            sampling.run_once()
            clock.now += FIND_EVERY / 4 + 0.001
        assert looks == [100.0], "not at every turn"
        sampling.run_once()
        assert len(looks) == 2
        assert "holds a lock that this waited for" in told()
    assert "The queues' database does not answer" in caplog.text
    assert "The console's database" not in caplog.text
    clock.now += FIND_EVERY
    sampling.run_once()
    assert LatestSample.objects.get().depth == 3
    clock.now += HEARTBEAT_EVERY
    sampling.run_once()
    assert told() == ""


def test_known_queues_are_measured_while_none_can_be_found(
    apart: Connection, sampling: SamplerProcess, clock: Clock, looks: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    address = make(apart)
    sampling.run_once()
    fill(apart, address, 3)
    make(apart, "New")
    clock.now += FIND_EVERY
    with caplog.at_level(logging.WARNING), apart.transaction():
        apart.run("lock table pg_class in access exclusive mode")
        sampling.run_once()
        sampling.run_once()
        assert (LatestSample.objects.get().depth, LatestSample.objects.get().error) == (3, "")
        clock.now += HEARTBEAT_EVERY
        sampling.run_once()
        assert "holds a lock that this waited for" in told()
        assert looks == [100.0, 105.0]
    assert "The console's database" not in caplog.text
    assert caplog.text.count("New queues are not found") == 1
    clock.now += FIND_EVERY
    sampling.run_once()
    assert set(Queue.objects.values_list("table", flat=True)) == {"Q", "New"}
    clock.now += HEARTBEAT_EVERY
    sampling.run_once()
    assert told() == ""


def test_queues_say_that_their_database_was_too_slow(
    apart: Connection, sampling: SamplerProcess, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sample begins by reading the server's clock."""
    make(apart)
    sampling.run_once()
    with monkeypatch.context() as meanwhile:
        seconds = server_clock.only_in(apart, "60", "0")
        server_clock.tells(meanwhile, f"(select clock_timestamp() from pg_sleep({seconds}))")
        sampling.run_once()
        assert "too slow" in LatestSample.objects.get().error
    sampling.run_once()
    assert LatestSample.objects.get().error == ""
