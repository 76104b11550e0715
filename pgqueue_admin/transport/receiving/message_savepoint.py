"""A savepoint per message of a batch: a failure undoes only the message's own writes and sends."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.dialects.errors import TransactionEndedByHandler
from pgqueue_admin.transport.wire.message import OutgoingMessage


class MessageSavepoint:
    """A block around each message in turn. The savepoint is set on first use of the session: a message that writes
    nothing costs no round trip.
    """

    __slots__ = ("_before", "_block", "_is_open", "_sent", "_session", "insist")

    def __init__(self, sent: list[OutgoingMessage], insist: Callable[[], None]) -> None:
        """``insist``: raises if the batch was rolled back, and writes would be committed without it."""
        self._sent = sent
        self.insist = insist
        self._before = 0
        self._session: ReceiveSession | None = None
        self._block: AbstractContextManager[Any] | None = None
        self._is_open = False

    def begin(self, session: ReceiveSession) -> None:
        if self._is_open and self._block is None:
            self.insist()
            is_alone = not session.in_transaction
            block = session.transaction()
            block.__enter__()
            self._block, self._session = block, session
            if is_alone:
                session.place_guard()
        elif self._block and not session.in_transaction:
            raise TransactionEndedByHandler

    def __enter__(self) -> None:
        self._before = len(self._sent)
        self._block = None
        self._is_open = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._is_open = False
        if error is None and self._session is None:  # the usual case: no message of the batch used the session
            return None
        try:
            return self._block.__exit__(kind, error, trace) if self._block else None
        except BaseException as refused:
            error = refused
            raise
        finally:
            if error is not None:
                del self._sent[self._before :]
            self._leave_other_transaction()

    def _leave_other_transaction(self) -> None:
        """Roll back a transaction that a handler began after ending ours: without our savepoint, leaving it failed."""
        if self._session and self._session.has_failed:
            self._session.rollback()
