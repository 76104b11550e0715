"""The wire to SQL Server: TLS inside TDS, with verified certificate, and an answer timeout (MS-TDS 2.2.6.5).

It replaces the driver's socket, because the driver's own TLS needs another library and compares names wrongly. It adds
encryption to the driver's prelogin, answers that the server has none, and then encrypts all that the driver sends.
"""

import select
import socket
import ssl
import struct
import sys
import time
from contextlib import suppress

from pgqueue_admin.dialects.errors import DatabaseDown, NoAnswer

_PRELOGIN, _LAST = 0x12, 0x01
_HEADER = struct.Struct(">BBHHBB")  # type, status, length, process, number, window
_ENCRYPTION, _ENDS = 0x01, 0xFF  # options of a prelogin
_ON, _NOT_SUPPORTED, _REQUIRED = b"\x01", b"\x02", b"\x03"
_CHUNK = 4096 - _HEADER.size
_READ = 65_536


class TdsWire:
    """``seconds``: timeout of a whole answer; None: none."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, host: str, seconds: float):
        self._sock, self._context, self._host = sock, context, host
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._greeting = b""  # the answer to the driver's prelogin, edited for the driver
        self._login_ends = time.monotonic() + seconds
        self._login_seconds = seconds
        self._is_logged_in = False
        self._answer_ends = 0.0
        self.seconds: float | None = None
        self.is_answered = False  # data has arrived since the last request

    # --- socket interface for the driver

    def sendall(self, data: bytes | bytearray, flags: int = 0) -> None:
        if self._tls is None:
            self._greeting = self._open(bytes(data))
            return
        self._tls.write(data)
        self.is_answered = False
        self._answer_ends = time.monotonic() + (self.seconds or 0)
        self._send(self._outgoing.read())

    def recv_into(self, buffer: memoryview, size: int = 0, flags: int = 0) -> int:
        got = self.recv(size or len(buffer))
        buffer[: len(got)] = got
        return len(got)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive data; empty if the connection is closed."""
        if self._greeting:
            got, self._greeting = self._greeting[:size], self._greeting[size:]
            return got
        assert self._tls
        while True:
            try:
                got = self._tls.read(size)
                self.is_answered = True
                return got
            except ssl.SSLWantReadError:
                if not (data := self._receive()):
                    return b""
                self._incoming.write(data)
            except ssl.SSLError:  # closed, properly or not
                return b""

    def setsockopt(self, *option: int) -> None:
        self._sock.setsockopt(*option)

    def settimeout(self, seconds: float | None) -> None:
        """Ignore the driver's timeout: the wire has its own."""

    def gettimeout(self) -> None:
        return None

    def close(self) -> None:
        """Close the socket. Raises DatabaseDown if the driver closes it before the login to follow a redirect, which
        would be unencrypted, to any host."""
        with suppress(OSError):
            self._sock.close()
        if not self._is_logged_in and sys.exc_info()[0] is None:
            raise DatabaseDown("the server redirects to another, which is not followed: name that one in the URL")

    # --- interface for the session

    def logged_in(self, answer_seconds: float | None) -> None:
        self._is_logged_in, self.seconds = True, answer_seconds

    def abort(self) -> None:
        """Shut down the socket, so that a waiting thread fails at once; closing it would not wake that thread."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def has_farewell(self) -> bool:
        """Whether unsolicited data has arrived: the server is closing the session."""
        waiting = select.poll()
        waiting.register(self._sock, select.POLLIN)
        return bool(waiting.poll(0))

    # --- prelogin and handshake

    def _open(self, prelogin: bytes) -> bytes:
        """Negotiate TLS. Raises DatabaseDown if the server does not encrypt, or its certificate is not accepted."""
        head, asked = prelogin[: _HEADER.size], prelogin[_HEADER.size :]
        self._send(head + _with_encryption(asked, _ON))
        answer = self._packets()
        if _encryption(answer) not in (_ON, _REQUIRED):
            raise DatabaseDown("the server offers no encryption: nothing was said to it")
        self._shake_hands()
        return _packet(0x04, _with_encryption(answer, _NOT_SUPPORTED))

    def _shake_hands(self) -> None:
        tls = self._context.wrap_bio(self._incoming, self._outgoing, server_hostname=self._host)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_in_packets(self._outgoing.read())
                self._incoming.write(self._packets())
            except ssl.SSLCertVerificationError as error:
                raise DatabaseDown(f"the server's certificate is not accepted: {error.verify_message}") from error
            except ssl.SSLError as error:
                raise DatabaseDown(f"no TLS 1.2 with the server: {error.reason or error}") from error
        self._send_in_packets(self._outgoing.read())
        self._tls = tls

    def _send_in_packets(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            is_last = start + _CHUNK >= len(data)
            self._send(_packet(_PRELOGIN, chunk, _LAST if is_last else 0))

    def _packets(self) -> bytes:
        """Payload of an answer of one or more packets."""
        whole, status = b"", 0
        while not status & _LAST:
            _, status, length, *_ = _HEADER.unpack(self._exactly(_HEADER.size))
            whole += self._exactly(max(0, length - _HEADER.size))
        return whole

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            if not (more := self._receive(size - len(data))):
                raise DatabaseDown("the server ended the connection before the login")
            data += more
        return data

    # --- the socket itself

    def _send(self, data: bytes) -> None:
        try:
            self._sock.settimeout(self._left())
            self._sock.sendall(data)
        except TimeoutError as error:
            raise self._no_answer() from error
        except OSError as error:
            raise DatabaseDown(str(error)) from error

    def _receive(self, size: int = _READ) -> bytes:
        """Raises NoAnswer after the timeout, even if data still arrives slowly."""
        try:
            self._sock.settimeout(self._left())
            return self._sock.recv(size)
        except TimeoutError as error:
            raise self._no_answer() from error
        except OSError as error:
            raise DatabaseDown(str(error)) from error

    def _left(self) -> float | None:
        """Seconds left, above 0: 0 would make the socket non-blocking; None: no timeout."""
        if self._is_logged_in and self.seconds is None:
            return None
        ends = self._answer_ends if self._is_logged_in else self._login_ends
        return max(0.001, ends - time.monotonic())

    def _no_answer(self) -> NoAnswer:
        seconds = (self.seconds or 0.0) if self._is_logged_in else self._login_seconds
        return NoAnswer(f"none came within {seconds:g} s", seconds=seconds)


def _packet(kind: int, data: bytes, status: int = _LAST) -> bytes:
    return _HEADER.pack(kind, status, len(data) + _HEADER.size, 0, 1, 0) + data


def _encryption_at(prelogin: bytes) -> int:
    """Offset of the encryption byte. Raises DatabaseDown if this is no prelogin."""
    for at in range(0, len(prelogin) - 5, 5):
        if prelogin[at] == _ENDS:
            break
        if prelogin[at] == _ENCRYPTION:
            offset, length = struct.unpack_from(">HH", prelogin, at + 1)
            if length and offset < len(prelogin):
                return int(offset)
    raise DatabaseDown("what answers is no SQL Server")


def _encryption(prelogin: bytes) -> bytes:
    at = _encryption_at(prelogin)
    return prelogin[at : at + 1]


def _with_encryption(prelogin: bytes, value: bytes) -> bytes:
    at = _encryption_at(prelogin)
    return prelogin[:at] + value + prelogin[at + 1 :]
