"""A relay that queries ``search_path`` before each statement, in the same session that runs the statement."""

import socket
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from tests.pooler import Message, exactly, read

_CANCEL = 80877102  # a greater code asks for encryption
_SETTLES = (b"Q", b"S", b"F")  # the server answers each of these with one ReadyForQuery
_SHOW = Message(b"Q", b"show search_path\0")
_READY, _ROW, _FAILED, _SAID, _ENDS = b"Z", b"D", b"E", b"S", b"X"
_MEANWHILE = (b"A", b"N", b"S")  # notifications, notices, settings: always forwarded to the client


class AskingRelay:
    """``paths[name]``: each path that sessions with this application name had before a statement, with the statement.
    The statement is empty for the end of a session.
    """

    def __init__(self, dsn: str):
        at = urlsplit(dsn)
        self._target = at.hostname or "127.0.0.1", at.port or 5432
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.dsn = at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
        self.paths: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.asked: dict[str, int] = defaultdict(int)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def saw(self, name: str, path: str, before: str) -> None:
        self.paths[name][path.replace(" ", "")].add(before)
        self.asked[name] += 1

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=[self._listener.accept()[0]], daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError, EOFError), socket.create_connection(self._target) as server:
            first = _first(client)
            server.sendall(first)
            if int.from_bytes(first[4:8]) == _CANCEL:
                return
            session = _Session(self, client, server)
            threading.Thread(target=session.answers, daemon=True).start()
            session.asks()


class _Session:
    """One thread forwards requests, another answers. The first queries the path between two statements."""

    def __init__(self, relay: AskingRelay, client: socket.socket, server: socket.socket):
        self._relay, self._client, self._server = relay, client, server
        self._name, self._path = "", ""
        self._awaited = 1  # ReadyForQuery messages still to come; the first one follows the sign-in
        self._state = b""
        self._shows = self._fails = False
        self._changed = threading.Condition()

    def asks(self) -> None:
        try:
            for each in self._messages():
                with self._changed:
                    is_between = not self._awaited and self._state in (b"I", b"T")
                if is_between:
                    self._relay.saw(self._name, self._show(), _statement(each))
                with self._changed:
                    if each.kind in _SETTLES:
                        self._awaited += 1
                    self._state = b""  # no query of ours until the server is ready again
                self._server.sendall(each.text)
        finally:
            for wire in (self._client, self._server):
                with suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)

    def _messages(self) -> Iterator[Message]:
        """Messages of the sign-in have the same form; the server is not ready until it has ended."""
        while True:
            each = read(self._client)
            yield each
            if each.kind == _ENDS:
                return

    def _show(self) -> str:
        with self._changed:
            self._path, self._shows = "", True
        self._server.sendall(_SHOW.text)
        with self._changed:
            if not self._changed.wait_for(lambda: not self._shows, 60):
                raise EOFError
            return self._path

    def answers(self) -> None:
        with suppress(OSError, EOFError):
            while True:
                each = read(self._server)
                if self._is_theirs(each):
                    self._client.sendall(each.text)
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)
        with self._changed:
            self._shows = False
            self._changed.notify_all()

    def _is_theirs(self, each: Message) -> bool:
        """Whether the message is for the client. Answers to our own query are not."""
        if each.kind == _SAID and each.body.startswith(b"application_name\0"):
            self._name = each.body.split(b"\0")[1].decode()
        with self._changed:
            is_ours = self._shows and each.kind not in _MEANWHILE
            if is_ours and each.kind == _ROW:
                self._path = each.body[6:].decode()
            elif is_ours and each.kind == _FAILED:
                self._path = each.body.decode(errors="replace")
            elif is_ours and each.kind == _READY:
                self._shows = False
                self._changed.notify_all()
            elif each.kind == _READY:
                self._awaited, self._state = self._awaited - 1, each.body
        return not is_ours


def _first(client: socket.socket) -> bytes:
    """The start-up message. A request for encryption before it is declined."""
    while True:
        length = exactly(client, 4)
        said = exactly(client, int.from_bytes(length) - 4)
        if int.from_bytes(said[:4]) <= _CANCEL:
            return length + said
        client.sendall(b"N")


def _statement(message: Message) -> str:
    """The text of the statement to come; for other messages, their kind."""
    if message.kind == b"Q":
        return message.body[:-1].decode(errors="replace")
    if message.kind == b"P":
        return message.body.split(b"\0")[1].decode(errors="replace")
    return "" if message.kind == _ENDS else message.kind.decode()
