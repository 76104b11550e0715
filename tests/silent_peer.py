"""A peer that is connected to and never answers: what a server behind a dead route looks like."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SilentPeer:
    """``met``: somebody has connected, and waits for a first word."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.met = threading.Event()
        threading.Thread(target=self._take, daemon=True).start()

    @property
    def dsn(self) -> str:
        return f"postgresql://nobody@127.0.0.1:{self._listener.getsockname()[1]}/none"

    def _take(self) -> None:
        try:
            while True:
                self._taken.append(self._listener.accept()[0])
                self.met.set()
        except OSError:
            return  # it was closed

    def close(self) -> None:
        """Whoever waits learns that nobody is there."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._taken:
            each.close()


@contextmanager
def silent_peer() -> Iterator[SilentPeer]:
    peer = SilentPeer()
    try:
        yield peer
    finally:
        peer.close()
