"""One message's share of a batch: what it wrote, and what it wanted to send, is undone alone when it fails."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import ended_from_within
from pgqueue_admin.transport.message import OutgoingMessage


class Share:
    """A block around one message after the other. A savepoint from the first use of the session on: a message that
    writes nothing costs no round trip.
    """

    __slots__ = ("_before", "_is_open", "_savepoint", "_sent", "insist")

    def __init__(self, sent: list[OutgoingMessage], insist: Callable[[], None]) -> None:
        """``insist``: raises where the batch has come back, and what is written now would be committed without it."""
        self._sent = sent
        self.insist = insist
        self._before = 0
        self._savepoint: AbstractContextManager[Any] | None = None
        self._is_open = False

    def begin(self, session: Connection) -> None:
        if self._is_open and self._savepoint is None:
            self.insist()
            savepoint = session.transaction()
            savepoint.__enter__()
            self._savepoint = savepoint
        elif self._savepoint and not session.in_transaction:
            raise ended_from_within()

    def __enter__(self) -> None:
        self._before = len(self._sent)
        self._savepoint = None
        self._is_open = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._is_open = False
        try:
            return self._savepoint.__exit__(kind, error, trace) if self._savepoint else None
        except BaseException as refused:
            error = refused
            raise
        finally:
            if error is not None:
                del self._sent[self._before :]
