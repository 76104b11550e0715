"""While a server is unresponsive, one caller waits for it and no other."""

import threading
from types import SimpleNamespace

import psycopg
import pytest

from pgqueue_admin.dialects import connect_breaker as module
from pgqueue_admin.dialects.connect_breaker import PAUSE, ConnectBreaker
from tests.waiting import until


class Server:
    """Does not answer for some seconds, then refuses; or answers."""

    def __init__(self, clock: SimpleNamespace) -> None:
        self.clock, self.silent, self.up, self.asked = clock, 2.0, False, 0

    def connect(self) -> str:
        self.asked += 1
        if not self.up:
            self.clock.now += self.silent
            raise psycopg.OperationalError("no answer")
        return "session"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def server(clock: SimpleNamespace) -> Server:
    return Server(clock)


def refused(circuit: ConnectBreaker, server: Server) -> int:
    """Fail to connect; return the number of attempts that reached the server."""
    with pytest.raises(psycopg.OperationalError, match="no answer"):
        circuit.attempt(server.connect)
    return server.asked


def test_timed_out_connect_is_retried_only_after_a_pause(clock: SimpleNamespace, server: Server) -> None:
    circuit = ConnectBreaker(psycopg.Error, psycopg.OperationalError)
    assert [refused(circuit, server) for _ in range(3)] == [1, 1, 1]
    clock.now += PAUSE
    assert refused(circuit, server) == 2


def test_a_server_that_is_back_is_noticed_within_a_second(clock: SimpleNamespace, server: Server) -> None:
    circuit = ConnectBreaker(psycopg.Error, psycopg.OperationalError)
    refused(circuit, server)
    server.up = True
    clock.now += 1.0
    assert [circuit.attempt(server.connect) for _ in range(3)] == ["session"] * 3


def test_immediate_refusal_allows_another_attempt_at_once(server: Server) -> None:
    circuit, server.silent = ConnectBreaker(psycopg.Error, psycopg.OperationalError), 0.0
    assert [refused(circuit, server) for _ in range(3)] == [1, 2, 3]


def test_callers_during_a_probe_get_the_last_error(clock: SimpleNamespace, server: Server) -> None:
    circuit, answered = ConnectBreaker(psycopg.Error, psycopg.OperationalError), threading.Event()
    refused(circuit, server)
    clock.now += PAUSE
    trying, got = threading.Event(), []

    def slowly() -> str:
        trying.set()
        assert answered.wait(20)
        return "session"

    one = threading.Thread(target=lambda: got.append(circuit.attempt(slowly)))
    one.start()
    assert trying.wait(20)
    assert refused(circuit, server) == 1
    answered.set()
    one.join()
    server.up = True
    assert (got, until(lambda: circuit.attempt(server.connect))) == (["session"], "session")
