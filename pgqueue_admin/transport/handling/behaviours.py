"""Behaviours: application code around handlers, and between messages and the wire."""

from collections.abc import Callable
from dataclasses import dataclass

from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.transport.recoverability.policy import Policy, standard
from pgqueue_admin.transport.sending.message_factory import MutateOutgoing
from pgqueue_admin.transport.tracing import Tracing
from pgqueue_admin.transport.wire.message import IncomingMessage

Behaviour = Callable[[Handler], Handler]
MutateIncoming = Callable[[IncomingMessage], IncomingMessage]


@dataclass(frozen=True, slots=True)
class BehaviourChain:
    """``behaviours`` wrap the handlers like Django's middleware, the first one outermost:

    def timed(get_next):
        def around(message, context):
            started = time.monotonic()
            get_next(message, context)  # the next behaviour, at the end the handlers
            log.info("%s took %.3f s", context.message_id, time.monotonic() - started)
        return around

    ``incoming`` changes a received message before deserialization. ``outgoing`` changes a message before it is sent;
    its second argument is the message being handled, or None. ``policy`` decides about failed messages. ``tracing``
    makes spans.
    """

    behaviours: tuple[Behaviour, ...] = ()
    incoming: tuple[MutateIncoming, ...] = ()
    outgoing: tuple[MutateOutgoing, ...] = ()
    policy: Policy = standard
    tracing: Tracing | None = None

    def __or__(self, other: "BehaviourChain") -> "BehaviourChain":
        """Combine two chains, the left one outermost, for endpoints with code in several modules."""
        return BehaviourChain(
            self.behaviours + other.behaviours,
            self.incoming + other.incoming,
            self.outgoing + other.outgoing,
            self.policy if other.policy is standard else other.policy,
            other.tracing or self.tracing,
        )

    def around(self, innermost: Handler) -> Handler:
        for behaviour in reversed(self.behaviours):
            innermost = behaviour(innermost)
        return innermost

    def received(self, message: IncomingMessage) -> IncomingMessage:
        for mutate in self.incoming:
            message = mutate(message)
        return message


PLAIN = BehaviourChain()
