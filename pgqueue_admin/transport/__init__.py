"""The engine: endpoints that send to and receive from queues that are tables. Needs a DSN, no Django."""

from pgqueue_admin.transport.actions import After, Discard, Exhaust, Immediately
from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.errors import Unrecoverable
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.behaviours import Pipeline
from pgqueue_admin.transport.handling.context import MessageContext
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.handling.replies import NoReply, Reply
from pgqueue_admin.transport.ports import Exhausted, Observer, Unobserved
from pgqueue_admin.transport.recoverability.policy import Attempted, standard
from pgqueue_admin.transport.sessions.breaker import Trouble
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.tracing import Tracing
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.serializers import Json, Raw, Serializers

__all__ = [
    "After",
    "Attempted",
    "Discard",
    "Endpoint",
    "EndpointSettings",
    "Exhaust",
    "Exhausted",
    "Failure",
    "Handlers",
    "Immediately",
    "IncomingMessage",
    "Json",
    "MessageContext",
    "NoReply",
    "Observer",
    "OutgoingMessage",
    "Pipeline",
    "Raw",
    "Reply",
    "Serializers",
    "SettingsRefused",
    "Tracing",
    "Trouble",
    "Unobserved",
    "Unrecoverable",
    "standard",
]
