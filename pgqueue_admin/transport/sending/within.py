"""Sending in a transaction of the caller's own: his commit sends, his rollback does not."""

from typing import TYPE_CHECKING

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.transport.sending.outbound import Outbound
from pgqueue_admin.transport.sending.sender import Sender, destinations
from pgqueue_admin.transport.sending.ways import Sending
from pgqueue_admin.transport.sessions.wake_ups import channel
from pgqueue_admin.transport.wire.message import OutgoingMessage

if TYPE_CHECKING:
    from pgqueue_admin.transport.client import Client


class Within(Sending):
    """Never begins, commits or rolls back. A session that commits each statement by itself does so with these too."""

    def __init__(self, endpoint: "Client", outbound: Outbound, sender: Sender, session: Connection):
        super().__init__(outbound)
        self._endpoint, self._sender, self._session = endpoint, sender, session

    def _take(self, outgoing: list[OutgoingMessage], immediate: bool) -> None:
        if immediate:
            return self._endpoint._take(outgoing, immediate)
        self._sender.dispatch(self._session, outgoing)
        self._sender.stored(outgoing)
        if self._endpoint.settings.notify:
            self._notify(destinations(outgoing))

    def _notify(self, queues: set[Address]) -> None:
        """Nobody tells us of the commit, but the server tells receivers then: each queue once, however often asked."""
        dialect = self._endpoint.dialect
        for queue in queues if dialect.can_notify else ():
            self._session.notify(channel(dialect, queue))

    def _subscribers(self, topics: list[str]) -> list[Address]:
        return self._endpoint.subscriptions.subscribers(self._session, topics)
