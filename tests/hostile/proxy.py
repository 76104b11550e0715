"""A wire between the product and a server of its own: cut, and mended again, without the server noticing."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from pgqueue_admin.embedded import ports

_ASKS = (b"Q", b"P", b"B")  # how what a client asks begins; what it is let in with begins otherwise


class Proxy:
    def __init__(self, dsn: str):
        at = urlsplit(dsn)
        self._target = at.hostname or "127.0.0.1", at.port or 5432
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._swallows = self._holds = False
        self.accepted = 0
        self.port = ports.free()  # nobody takes it while the wire is cut
        self.mend()
        self.dsn = at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{self.port}").geturl()

    def mend(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Nobody is let in any more, and whoever was in is out."""
        with self._lock:
            assert self._listener
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
            self._put_out()

    def break_off(self) -> None:
        """Whoever was in is out, and may come in again at once."""
        with self._lock:
            self._put_out()

    def _put_out(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def swallowing(self) -> Iterator[None]:
        """Connections stay open, and what is sent arrives nowhere: nobody is told."""
        self._swallows = True
        try:
            yield
        finally:
            self._swallows = False

    @contextmanager
    def holding(self) -> Iterator[None]:
        """As a pooler whose sessions are all lent: whoever comes is let in, and what they ask waits for ever."""
        self._holds = True
        try:
            yield
        finally:
            self._holds = False
            self.break_off()

    @contextmanager
    def down(self) -> Iterator[None]:
        self.cut()
        try:
            yield
        finally:
            self.mend()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self._join(listener, listener.accept()[0])

    def _join(self, listener: socket.socket, client: socket.socket) -> None:
        self.accepted += 1
        try:
            server = socket.create_connection(self._target)
        except OSError:  # it is down: so are we, for this one
            client.close()
            return
        with self._lock:
            if self._listener is not listener:  # cut meanwhile
                client.close()
                server.close()
                return
            self._open |= {client, server}
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not (self._swallows or (self._holds and data[:1] in _ASKS)):
                    sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source, sink}
