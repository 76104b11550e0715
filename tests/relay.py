"""A process between the product and its server. While it is stopped, its kernel still acknowledges packets."""

import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from urllib.parse import urlsplit

from pgqueue_admin.embedded import ports
from tests.waiting import until

AT_ONCE = 1 << 16


class Relay:
    """``bytes_per_second``: limit of each connection towards the client; 0 is no limit."""

    def __init__(self, dsn: str, bytes_per_second: int = 0):
        at = urlsplit(dsn)
        self.port = ports.free()
        self._command = [str(self.port), at.hostname or "127.0.0.1", str(at.port or 5432), str(bytes_per_second)]
        self.dsn = at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{self.port}").geturl()
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen([sys.executable, __file__, *self._command], env=_environment())
        until(lambda: ports.answers(self.port, "127.0.0.1"), what="the relay")

    def stop(self) -> None:
        """Freeze all connections: they stay open, carry nothing, and the kernel still accepts new ones."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def replace(self) -> None:
        """Replace the process by another at the same port; its connections are lost."""
        self.end()
        self._begin()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _run(port: int, host: str, target: int, bytes_per_second: int) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    other: dict[socket.socket, socket.socket] = {}
    servers: set[socket.socket] = set()
    while True:
        for each in select.select([listener, *other], [], [])[0]:
            if each is listener:
                client = listener.accept()[0]
                try:
                    server = socket.create_connection((host, target))
                except OSError:  # the server is away: close the client too
                    client.close()
                    continue
                other |= {client: server, server: client}
                servers.add(server)
            elif each in other and not _carry(each, other[each], bytes_per_second if each in servers else 0):
                for end in (other.pop(other[each]), other.pop(each)):
                    servers.discard(end)
                    end.close()


def _carry(source: socket.socket, sink: socket.socket, bytes_per_second: int) -> bool:
    with suppress(OSError):
        if data := source.recv(bytes_per_second // 10 or AT_ONCE):
            sink.sendall(data)
            if bytes_per_second:
                select.select([], [], [], 0.1)  # delays all connections alike
            return True
    return False


if __name__ == "__main__":
    _run(*(int(said) if said.isdigit() else said for said in sys.argv[1:]))  # type: ignore[arg-type]
