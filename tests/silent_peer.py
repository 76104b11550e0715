"""A peer that accepts connections and never answers, like a server behind a dead route."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SilentPeer:
    """``met`` is set once a client has connected and waits for an answer."""

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
        """Close the connection, so that the client stops waiting."""
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
