"""The handler context: the message's headers, and methods to send."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn, cast

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import Connection, ReceiveSession
from pgqueue_admin.transport.errors import HandlerFinished, SessionBelongsToMessage
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sending.send_api import SendApi
from pgqueue_admin.transport.unit_of_work import HandlerSession
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.header_composer import Types
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage


class GuardedConnection:
    """The receive session as lent to handlers. It refuses use after the message: a handler that kept it would write
    into the transaction of another message, or end that."""

    __slots__ = ("_session", "before_use")

    def __init__(self, session: ReceiveSession):
        session.lend(True)
        self._session: ReceiveSession | _Over = session
        self.before_use: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> Any:
        if self.before_use:
            self.before_use()
        return getattr(self._session, name)

    @contextmanager
    def transaction(self) -> Iterator["GuardedConnection"]:
        """Yield the guard, not the session, whose use would go unnoticed, even after the message."""
        if self.before_use:
            self.before_use()
        with self._session.transaction():
            yield self

    def close(self) -> NoReturn:
        raise SessionBelongsToMessage

    def __enter__(self) -> NoReturn:
        raise SessionBelongsToMessage  # the end of the block would close it

    def __exit__(self, *exc: object) -> None: ...

    def shared(self, before_use: Callable[[], None]) -> object:
        """The session itself; ``before_use`` is called before each use by handlers."""
        self.before_use = before_use
        return self._session

    def take_back(self) -> None:
        """End the loan. Close the session if a handler left it unusable."""
        self._session.close_if_busy()
        self._session.lend(False)
        self._session, self.before_use = _OVER, None


class _Over:
    def __getattr__(self, name: str) -> Any:
        raise HandlerFinished

    def close_if_busy(self) -> None: ...
    def lend(self, is_lent: bool) -> None: ...


_OVER = _Over()


Handler = Callable[[Any, "MessageContext"], None]  # gets the deserialized message


class MessageContext(SendApi):
    """Sends wait until all handlers have succeeded; ``immediate=True`` sends at once, even if they fail.

    A context used after its message raises HandlerFinished.
    """

    handlers: Sequence[Handler] = ()
    handling: tuple[Handler, float] | None = None  # the running one, and its start

    def __init__(self, message: IncomingMessage, outbound: MessageFactory, desk: HandlerSession):
        self._outbound = outbound
        self._cause = self.received = self.message = message  # a mutator may replace ``message``
        self.outgoing: list[OutgoingMessage] = []
        self._desk: HandlerSession | None = desk
        self._handed: GuardedConnection | None = None
        self._enlisted: dict[str, GuardedConnection] = {}
        self.after_commit: list[Callable[[], None]] = []  # called after the commit of ``connection``

    @property
    def connection(self) -> Connection | None:
        """The session of the handlers' transaction: the receive's, with an outbox the outbox's; None in mode none."""
        return cast("Connection | None", self._lent())

    def _lent(self) -> GuardedConnection | None:
        session = self._open().session_for_handlers()
        if session and self._handed is None:
            self._handed = GuardedConnection(session)
        return self._handed

    @property
    def lends_connection(self) -> bool:
        """Whether ``connection`` is a session; saves the round trip that ``connection`` may need."""
        return self._open().lends_session

    def share_connection(self, before_handlers: Callable[[], None]) -> Connection:
        """For a library that also writes in ``connection``, and changes its settings.

        ``before_handlers`` is called before each use of ``connection`` by a handler.
        """
        lent = self._lent()
        assert lent, "lends_connection was asked before"
        return cast("Connection", lent.shared(before_handlers))

    def enlist(self, name: str) -> Connection:
        """A session of another database, by its name in ``Outbox(databases=…)``; it commits together with the outbox.

        Raises NotEnlisted, DatabaseDown.
        """
        session = self._open().enlist(name)
        if name not in self._enlisted:
            self._enlisted[name] = GuardedConnection(session)
        return cast("Connection", self._enlisted[name])

    def close(self) -> None:
        """End the context after the handlers: later sends would belong to another message, or none."""
        self._desk = None
        for handed in [self._handed, *self._enlisted.values()]:
            if handed:
                handed.take_back()

    @property
    def headers(self) -> h.Headers:
        return self.message.headers

    @property
    def message_id(self) -> str:
        return self.message.message_id

    def reply(
        self,
        message: Any,
        *,
        type: Types,
        headers: h.Headers | None = None,
        ttbr: timedelta | None = None,
        immediate: bool = False,
    ) -> None:
        """Send to the message's reply address. Raises NoReplyAddress."""
        self._take([self._outbound.reply(message, type, headers or {}, ttbr, self.message)], immediate)

    def reply_code(self, code: int, *, headers: h.Headers | None = None, immediate: bool = False) -> None:
        """Reply with a number and no body, for a callback that expects one. Raises NoReplyAddress."""
        self._take([self._outbound.reply_code(code, headers or {}, self.message)], immediate)

    def _open(self) -> HandlerSession:
        if self._desk is None:
            raise HandlerFinished
        return self._desk

    def _subscribers(self, topics: list[str]) -> list[Address]:
        return self._open().subscribers(topics)

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        desk = self._open()
        if immediate:
            desk.dispatch_now(outgoing)
        else:
            self.outgoing += outgoing
