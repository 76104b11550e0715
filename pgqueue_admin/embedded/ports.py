"""Free and busy TCP ports on this machine."""

import random
import socket
from pathlib import Path

from pgqueue_admin.embedded.errors import ServerFailed

_LOWEST, _USUAL_EPHEMERAL = 20_000, 32_768


def free() -> int:
    """A free port below the ephemeral range. While a server is down, an outgoing connection could be given an
    ephemeral port of the server, or even connect to itself."""
    for port in random.sample(range(_LOWEST, _ephemeral()), 200):
        if not is_busy(port):
            return port
    raise ServerFailed(f"No free port was found between {_LOWEST} and {_ephemeral()} on 127.0.0.1.")


def is_busy(port: int, host: str = "127.0.0.1") -> bool:
    is_v6 = ":" in host
    with socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET) as probe:
        if is_v6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as the server will: IPv4 may be another's
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will: TIME_WAIT is not busy
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False


def answers(port: int, host: str = "127.0.0.1") -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def kept_or_free(wanted: int) -> int:
    """The previous port, so that addresses stay; a free one if that is busy."""
    return wanted if wanted and not is_busy(wanted) else free()


def _ephemeral() -> int:
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError):
        lowest = _USUAL_EPHEMERAL
    return lowest if lowest > _LOWEST + 1000 else _USUAL_EPHEMERAL
