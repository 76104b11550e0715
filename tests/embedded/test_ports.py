"""A port is asked for where it will be listened on: IPv4 and IPv6 have each their own."""

import socket

import pytest

from pgqueue_admin.embedded import ports


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
