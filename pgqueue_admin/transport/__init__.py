"""The engine: endpoints that send to and receive from queues that are tables. Needs a DSN, no Django."""

from pgqueue_admin.transport.actions import After, Attempted, Discard, Exhaust, Immediately
from pgqueue_admin.transport.behaviours import Pipeline
from pgqueue_admin.transport.breaker import Trouble
from pgqueue_admin.transport.context import MessageContext
from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.errors import Unrecoverable
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handlers import Handlers
from pgqueue_admin.transport.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.ports import Exhausted, Observer, Unobserved
from pgqueue_admin.transport.replies import NoReply, Reply
from pgqueue_admin.transport.serializers import Json, Raw, Serializers
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.tracing import Tracing

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
]
