"""Sending in a transaction of the caller's own: his commit sends, his rollback does not."""

from collections.abc import Callable

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.connection import ReceiveSession
from pgqueue_admin.transport.sending.dispatcher import Dispatcher, destinations
from pgqueue_admin.transport.sending.message_factory import MessageFactory
from pgqueue_admin.transport.sending.send_api import SendApi
from pgqueue_admin.transport.tables.subscriptions import Subscriptions
from pgqueue_admin.transport.wire.message import OutgoingMessage


class ExternalTransaction(SendApi):
    """Never begins, commits or rolls back. A session that commits each statement by itself does so with these too."""

    def __init__(
        self,
        outbound: MessageFactory,
        sender: Dispatcher,
        subscriptions: Subscriptions,
        session: ReceiveSession,
        tell: Callable[[set[Address]], None],
        at_once: Callable[[list[OutgoingMessage]], None],
    ):
        """``tell`` wakes who receives there once the caller commits; ``at_once`` sends and commits by itself."""
        super().__init__(outbound)
        self._sender, self._subscriptions, self._session = sender, subscriptions, session
        self._tell, self._at_once = tell, at_once

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        if immediate:
            return self._at_once(outgoing)
        self._sender.dispatch(self._session, outgoing)
        self._sender.stored(outgoing)
        self._tell(destinations(outgoing))

    def _subscribers(self, topics: list[str]) -> list[Address]:
        return self._subscriptions.subscribers(self._session, topics)
