"""A TLS relay before a server without TLS; it presents the certificate of tests/fixtures/tls."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TLS = Path(__file__).resolve().parent / "fixtures/tls"
CERTIFICATE = TLS / "certificate.pem"  # for localhost and 127.0.0.1, signed by no known authority
_SSL_REQUEST = bytes.fromhex("0000000804d2162f")


class Relay:
    def __init__(self, target: int, as_postgresql: bool, host: str):
        self._target, self._as_postgresql = target, as_postgresql
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
        self._listener = socket.create_server((host, 0))
        self.port = int(self._listener.getsockname()[1])
        self.told = 0  # bytes that clients sent after they had accepted the certificate
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._join, args=(self._listener.accept()[0],), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if self._as_postgresql:
                if client.recv(8) != _SSL_REQUEST:
                    return
                client.sendall(b"S")
            with (
                self._context.wrap_socket(client, server_side=True) as secure,
                socket.create_connection(("127.0.0.1", self._target)) as server,
            ):
                back = threading.Thread(target=self._carry, args=(server, secure), daemon=True)
                back.start()
                while data := secure.recv(65_536):
                    self.told += len(data)
                    server.sendall(data)
                server.shutdown(socket.SHUT_RDWR)
                back.join()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


@contextmanager
def before(port: int, as_postgresql: bool = False, host: str = "127.0.0.1") -> Iterator[Relay]:
    relay = Relay(port, as_postgresql, host)
    try:
        yield relay
    finally:
        relay.close()
