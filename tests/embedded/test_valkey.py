"""The embedded broker on a real process, its port, and the file with the addresses of embedded servers."""

import os
import signal
import socket
from pathlib import Path

import pytest
import redis

from pgqueue_admin.embedded import ports, state_file
from pgqueue_admin.embedded.state_file import ServerState
from pgqueue_admin.embedded.valkey import Valkey
from tests.waiting import until


def test_broker_needs_its_password_and_restarts_on_its_port(tmp_path: Path) -> None:
    broker = Valkey(tmp_path)
    broker.start()
    try:
        assert redis.Redis.from_url(broker.url).ping()
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=broker.port).ping()
        url = broker.url
        assert broker.pid
        os.kill(broker.pid, signal.SIGKILL)
        until(lambda: not broker.running, what="the death is noticed")
        broker.start()
        assert broker.url == url
        assert redis.Redis.from_url(url).ping()
    finally:
        broker.stop()


# A port is checked on the address to listen on: IPv4 and IPv6 have separate ports.
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_a_port_is_busy_while_somebody_listens_there(host: str) -> None:
    port, is_v6 = ports.free(), ":" in host
    with socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET) as listening:
        try:
            listening.bind((host, port))
        except OSError:
            pytest.skip(f"{host} is no address here")
        assert ports.is_busy(port, host)
        assert not ports.answers(port, host)
        listening.listen()
        assert ports.answers(port, host)
    assert not ports.is_busy(port, host)


# The file with the addresses of embedded servers.
def test_never_started_is_empty(tmp_path: Path) -> None:
    assert state_file.read(tmp_path) == ServerState()


def test_state_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    written = ServerState(dsn="postgresql://x", secret_key="y", postgresql_port=5)
    state_file.write(tmp_path / "var", written)
    assert state_file.read(tmp_path / "var") == written
    assert (tmp_path / "var/state.json").stat().st_mode & 0o777 == 0o600


def test_a_field_of_a_newer_version_and_half_a_file_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"dsn": "x", "newer": 1}')
    assert state_file.read(tmp_path).dsn == "x"
    (tmp_path / "state.json").write_text('{"dsn": ')
    assert state_file.read(tmp_path) == ServerState()
