"""Forwards a due delayed message from this endpoint's queue to its destination (wire sheet 3)."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable, Deadlock, TimedOut
from pgqueue_admin.transport.errors import NotForwarded
from pgqueue_admin.transport.failure import Failure, failure_of
from pgqueue_admin.transport.wire.addresses import Addressing
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage

PASSING = (Deadlock, TimedOut)  # not the destination's fault: it is retried


class Forwarding:
    def __init__(self, addressing: Addressing):
        self.addressing = addressing

    def leaves(self, message: IncomingMessage) -> bool:
        """Whether it goes to another queue; endpoints write canonical addresses, but any spelling is accepted."""
        if not message.forward_to or message.unreadable:
            return False
        try:
            return self._destination(message) != message.queue
        except AddressUnreadable:
            return True

    def onward(self, message: IncomingMessage) -> OutgoingMessage:
        """The same message in a new row. Raises AddressUnreadable."""
        return OutgoingMessage(self._destination(message), message.at_its_destination().headers, message.body)

    def failure(self, message: IncomingMessage, error: BaseException, endpoint: str) -> Failure:
        refused = NotForwarded(f"the delayed message could not be forwarded to {message.forward_to}: {error}")
        refused.__cause__ = error
        return failure_of(refused, endpoint, message.queue, recoverable=False, forward_to=message.forward_to)

    def own_address(self, message: IncomingMessage) -> str:
        """The forward header of a message that returns to its own queue."""
        return self.addressing.canonical(message.queue)

    def _destination(self, message: IncomingMessage) -> Address:
        return self.addressing.resolve(message.forward_to)
