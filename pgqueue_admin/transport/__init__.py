"""The engine: endpoints that send to and receive from queue tables. Needs a DSN, no Django."""

from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.errors import Unrecoverable
from pgqueue_admin.transport.failure import Failure
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.callbacks import Reply, ReplyTimeout
from pgqueue_admin.transport.handling.context import MessageContext
from pgqueue_admin.transport.handling.handlers import Handlers
from pgqueue_admin.transport.ports import Exhausted, Observer, Unobserved
from pgqueue_admin.transport.recoverability.policy import FailedAttempt, standard
from pgqueue_admin.transport.recoverability_actions import After, Discard, Exhaust, Immediately
from pgqueue_admin.transport.sessions.circuit_breaker import BreakerTrouble
from pgqueue_admin.transport.settings import EndpointSettings, SettingsRefused
from pgqueue_admin.transport.tracing import Tracing
from pgqueue_admin.transport.wire.message import IncomingMessage, OutgoingMessage
from pgqueue_admin.transport.wire.serializers import JsonSerializer, RawSerializer, Serializers

__all__ = [
    "After",
    "BehaviourChain",
    "BreakerTrouble",
    "Discard",
    "Endpoint",
    "EndpointSettings",
    "Exhaust",
    "Exhausted",
    "FailedAttempt",
    "Failure",
    "Handlers",
    "Immediately",
    "IncomingMessage",
    "JsonSerializer",
    "MessageContext",
    "Observer",
    "OutgoingMessage",
    "RawSerializer",
    "Reply",
    "ReplyTimeout",
    "Serializers",
    "SettingsRefused",
    "Tracing",
    "Unobserved",
    "Unrecoverable",
    "standard",
]
