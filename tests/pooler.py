"""A small connection pooler: in transaction mode, a client gets any free server session for each transaction."""

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, LifoQueue
from typing import NamedTuple
from urllib.parse import urlsplit

from psycopg.pq import ConnStatus, PGconn

_CANCEL = 80877102  # a greater code asks for encryption
_ASKS = (b"Q", b"S")  # the server answers each of these with one ReadyForQuery
_TOLD = (
    *(b"server_version", b"server_encoding", b"client_encoding", b"TimeZone", b"DateStyle", b"IntervalStyle"),
    *(b"standard_conforming_strings", b"integer_datetimes", b"in_hot_standby", b"default_transaction_read_only"),
)
_READY, _AT_REST = b"Z", b"I"


class Message(NamedTuple):
    kind: bytes
    body: bytes

    @property
    def text(self) -> bytes:
        return self.kind + (len(self.body) + 4).to_bytes(4) + self.body


class Pooler:
    """``size``: number of server sessions. In session mode a client keeps one until it disconnects."""

    def __init__(self, dsn: str, size: int, mode: str = "transaction"):
        at = urlsplit(dsn)
        self._dsn = dsn
        self._mode = mode
        self._room = threading.Semaphore(size)
        self._free: LifoQueue[Server] = LifoQueue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.dsn = at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{self.port}").geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        while not self._free.empty():
            self._free.get().close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=[self._listener.accept()[0]], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError):
            _let_in(client)
            with self._lent() as server:
                client.sendall(server.greeting())
                while self._mode == "session":
                    server.carry(client, read(client))
            while True:
                asked = read(client)
                with self._lent() as server:
                    while not server.carry(client, asked):
                        asked = read(client)

    @contextmanager
    def _lent(self) -> Iterator["Server"]:
        with self._room:
            try:
                server = self._free.get_nowait()
            except Empty:
                server = Server(self._dsn)
            try:
                yield server
            except BaseException:
                server.close()
                raise
            self._free.put(server)


class Server:
    """A server session that the driver opens; afterwards we speak on its socket."""

    def __init__(self, dsn: str):
        self._session = PGconn.connect(dsn.encode())
        assert self._session.status == ConnStatus.OK, self._session.get_error_message()
        self._wire = socket.socket(fileno=os.dup(self._session.socket))
        self._wire.setblocking(True)

    def greeting(self) -> bytes:
        """The messages that end a client's sign-in."""
        told = [(name, self._session.parameter_status(name)) for name in _TOLD]
        said = [Message(b"S", name + b"\0" + value + b"\0") for name, value in told if value is not None]
        ready = Message(_READY, _AT_REST)
        return b"".join(each.text for each in (Message(b"R", bytes(4)), *said, Message(b"K", bytes(8)), ready))

    def carry(self, client: socket.socket, asked: Message) -> bool:
        """Forward requests and their answers; return whether the transaction is over."""
        awaited, state = 0, b""
        while asked.kind != b"X":
            self._wire.sendall(asked.text)
            awaited += asked.kind in _ASKS
            while awaited or state == b"":
                ready = select.select([client, self._wire], [], [])[0]
                if self._wire in ready:
                    said = read(self._wire)
                    client.sendall(said.text)
                    if said.kind == _READY:
                        awaited, state = awaited - 1, said.body
                elif client in ready:
                    break
            else:
                return state == _AT_REST
            asked = read(client)
        raise EOFError

    def close(self) -> None:
        self._wire.close()
        self._session.finish()


def _let_in(client: socket.socket) -> None:
    """Accept any client without a password, decline encryption and ignore its settings."""
    while (code := int.from_bytes(exactly(client, int.from_bytes(exactly(client, 4)) - 4)[:4])) >= _CANCEL:
        if code == _CANCEL:
            raise EOFError
        client.sendall(b"N")


def read(wire: socket.socket) -> Message:
    kind = exactly(wire, 1)
    return Message(kind, exactly(wire, int.from_bytes(exactly(wire, 4)) - 4))


def exactly(wire: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = wire.recv(size - len(read))
        if not more:
            raise EOFError
        read += more
    return read
