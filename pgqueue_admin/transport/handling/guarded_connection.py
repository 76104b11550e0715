"""What handlers hold of the session that their message came in: it refuses when the message is over."""

from typing import Any, NoReturn

from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.transport.errors import HandlerFinished, SessionBelongsToMessage


class GuardedConnection:
    """A ReceiveSession. Who kept it would write into the transaction of another message, or end that."""

    __slots__ = ("_session",)

    def __init__(self, session: ReceiveSession):
        session.lend(True)
        self._session: ReceiveSession | _Over = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def close(self) -> NoReturn:
        raise SessionBelongsToMessage

    def __enter__(self) -> NoReturn:
        raise SessionBelongsToMessage  # the end of that block would close it

    def __exit__(self, *exc: object) -> None: ...

    def take_back(self) -> None:
        """Its handlers are done. One may have left it so that nobody can ask anything more of it."""
        self._session.close_if_busy()
        self._session.lend(False)
        self._session = _OVER


class _Over:
    def __getattr__(self, name: str) -> Any:
        raise HandlerFinished

    def close_if_busy(self) -> None: ...
    def lend(self, is_lent: bool) -> None: ...


_OVER = _Over()
