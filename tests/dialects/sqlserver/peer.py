"""A peer that lets a driver log in over TLS, then answers "done", and a number to the query for a transaction's id.

It is no SQL Server: it understands no statement, and no statement's effect is tested with it.
"""

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.tls_relay import CERTIFICATE, TLS

_HEADER = struct.Struct(">BBHHBB")
_PRELOGIN, _REPLY, _BATCH, _ATTENTION = 0x12, 0x04, 0x01, 0x06
DONE = struct.pack("<BHHQ", 0xFD, 0, 0, 0)
ASKED, NUMBER = "current_transaction_id() as id", 4711
_COLUMN = struct.pack("<HIHBBB", 1, 0, 1, 0x26, 8, 2) + "id".encode("utf-16-le")
_ROW = b"\x81" + _COLUMN + struct.pack("<BBq", 0xD1, 8, NUMBER) + struct.pack("<BHHQ", 0xFD, 0x10, 0xC1, 1)
_STOPPED = struct.pack("<BHHQ", 0xFD, 0x20, 0, 0)
SILENT = "silence"  # a statement with this word gets no answer, but can be cancelled
DEAF = "deafness"  # one with this cannot be cancelled either
SLOW = "trickle"  # one with this gets a byte now and then, but never the whole answer
_NAME = "peer".encode("utf-16-le")
_ACK = struct.pack("<BI", 1, 0)[:1] + struct.pack(">I", 0x74000004) + bytes([4]) + _NAME + struct.pack(">I", 0)
LOGIN = struct.pack("<BH", 0xAD, len(_ACK)) + _ACK + DONE


def prelogin(encryption: int) -> bytes:
    """Version and encryption."""
    options = struct.pack(">BHH", 0, 11, 6) + struct.pack(">BHH", 1, 17, 1) + b"\xff"
    return options + bytes(6) + bytes([encryption])


def _statement(batch: bytes) -> str:
    """The text after the headers, which begin with their length."""
    (length,) = struct.unpack_from("<I", batch)
    return batch[length:].decode("utf-16-le")


def refusal(number: int) -> bytes:
    """The error token of a refused statement (MS-TDS 2.2.7.10)."""
    said = struct.pack("<iBBH", number, 1, 16, 1) + "x".encode("utf-16-le") + struct.pack("<BBI", 0, 0, 1)
    return struct.pack("<BH", 0xAA, len(said)) + said + struct.pack("<BHHQ", 0xFD, 2, 0, 0)


def redirect(port: int) -> bytes:
    """A redirect to that port of 127.0.0.1 (MS-TDS 2.2.7.9, type 20)."""
    name = "127.0.0.1".encode("utf-16-le")
    where = struct.pack("<BHH", 0, port, len(name) // 2) + name
    change = struct.pack("<BH", 20, len(where)) + where + struct.pack("<H", 0)
    return struct.pack("<BH", 0xE3, len(change)) + change


class Peer:
    """``encryption``: the value of its prelogin, 1 for on. ``mute``: it accepts connections and never answers.

    ``elsewhere``: the port that logged-in clients are redirected to.
    """

    def __init__(self, encryption: int = 1, mute: bool = False, host: str = "127.0.0.1", elsewhere: int = 0):
        self._encryption, self._mute, self._elsewhere = encryption, mute, elsewhere
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(CERTIFICATE, TLS / "key.pem")
        self._listener = socket.create_server((host, 0))
        self.port = int(self._listener.getsockname()[1])
        self.logins = list[bytes]()
        self.asked = list[str]()  # statements without parameters
        self.called = list[bytes]()  # those with parameters, as received
        self.stopped = 0  # number of cancel requests
        self.is_over = False  # refuse statements that check for the transaction they began
        self._is_deaf = False
        self.gone = threading.Event()  # a client closed its connection
        self._kept = list[socket.socket]()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in (self._listener, *self._kept):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._kept.append(client)
                if not self._mute:
                    threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, ConnectionError, ssl.SSLError):
            wire = _Wire(client)
            wire.packet()
            wire.send(_REPLY, prelogin(self._encryption))
            if self._encryption != 1:
                self.logins.append(wire.packet()[1])  # anything sent unencrypted
                return
            wire.shake_hands(self._context)
            self.logins.append(wire.packet()[1])
            wire.send(_REPLY, (redirect(self._elsewhere) if self._elsewhere else b"") + LOGIN)
            while self._answer(wire):
                pass
        self.gone.set()

    def _answer(self, wire: "_Wire") -> bool:
        kind, data = wire.packet()
        asked = _statement(data) if kind == _BATCH else ""
        if kind == _ATTENTION:
            self.stopped += 1
            if not self._is_deaf:
                wire.send(_REPLY, _STOPPED)
            return True
        if kind == _BATCH:
            self.asked.append(asked)
        else:
            self.called.append(data)
        self._is_deaf = DEAF in asked
        if SILENT in asked or DEAF in asked:
            return True
        if SLOW in asked:
            wire.trickle(self.gone)
            return False
        wire.send(_REPLY, self._said_to(asked))
        return True

    def _said_to(self, asked: str) -> bytes:
        if self.is_over and "throw 51000" in asked:
            return refusal(51000)
        return _ROW if ASKED in asked else DONE


class _Wire:
    """Packets, unencrypted until the handshake and inside TLS after it."""

    def __init__(self, client: socket.socket):
        self._client = client
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None

    def packet(self) -> tuple[int, bytes]:
        whole, status, kind = b"", 0, 0
        while not status & 1:
            kind, status, length, *_ = _HEADER.unpack(self._exactly(8))
            whole += self._exactly(length - 8)
        return kind, whole

    def send(self, kind: int, data: bytes) -> None:
        self._write(_HEADER.pack(kind, 1, len(data) + 8, 0, 1, 0) + data)

    def trickle(self, gone: threading.Event) -> None:
        self._write(_HEADER.pack(_REPLY, 1, 4096, 0, 1, 0))
        while not gone.wait(0.05):
            self._write(b"\0")

    def shake_hands(self, context: ssl.SSLContext) -> None:
        tls = context.wrap_bio(self._in, self._out, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                if data := self._out.read():
                    self.send(_PRELOGIN, data)
                self._in.write(self.packet()[1])
        self.send(_PRELOGIN, self._out.read())
        self._tls = tls

    def _write(self, data: bytes) -> None:
        if self._tls:
            self._tls.write(data)
            data = self._out.read()
        self._client.sendall(data)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self._read(size - len(data))
        return data

    def _read(self, size: int) -> bytes:
        while True:
            if self._tls:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    pass
            more = self._client.recv(65_536 if self._tls else size)
            if not more:
                raise ConnectionError
            if not self._tls:
                return more
            self._in.write(more)


@contextmanager
def peer(encryption: int = 1, mute: bool = False, host: str = "127.0.0.1", elsewhere: int = 0) -> Iterator[Peer]:
    made = Peer(encryption, mute, host, elsewhere)
    try:
        yield made
    finally:
        made.close()
