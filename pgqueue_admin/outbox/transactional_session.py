"""Sends from outside a handler, with the caller's own commit: in a web request or a script.

The sends become a record in the caller's transaction. NServiceBus sends a control message first and waits for the row;
here the relay finds records by itself, so nothing is sent before the commit, and nothing after a rollback.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.connection import Command
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sending.send_api import SendApi
from pgqueue_admin.transport.wire.ids import new_ids
from pgqueue_admin.transport.wire.message import OutgoingMessage

log = logging.getLogger("pgqueue_admin.outbox")


class TransactionalSession(SendApi):
    """A context manager: sends are stored when the block ends without an error, and sent after the caller's commit."""

    def __init__(
        self,
        outbound: MessageFactory,
        session: Connection,
        storing: Callable[[str, Sequence[OutgoingMessage]], Command],
        dispatch: Callable[[str], None],
        at_once: Callable[[list[OutgoingMessage]], None],
        subscribers: Callable[[list[str]], list[Address]],
    ):
        """``session``: the caller's, which is neither committed nor rolled back. ``dispatch``: sends a record."""
        super().__init__(outbound)
        self._session, self._storing, self._at_once = session, storing, at_once
        self._dispatch, self._find_subscribers = dispatch, subscribers
        self._outgoing: list[OutgoingMessage] = []
        self.record_id, _ = new_ids()

    def dispatch(self) -> None:
        """After the caller's commit: send at once. If that fails, or is never called, the relay sends."""
        if not self._outgoing:
            return
        try:
            self._dispatch(self.record_id)
        except DatabaseError as error:
            log.warning("Record %s is left to the relay: %s", self.record_id, error)

    def __enter__(self) -> "TransactionalSession":
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None and self._outgoing:
            self._session.run(*self._storing(self.record_id, self._outgoing))

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        if immediate:
            return self._at_once(outgoing)
        self._outgoing += outgoing

    def _subscribers(self, topics: list[str]) -> list[Address]:
        return self._find_subscribers(topics)
