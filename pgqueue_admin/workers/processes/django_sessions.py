"""Closes lost Django connections in handler threads, as a web request's end would."""

import logging
from typing import Any

from django.db import connections

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.workers.processes import shared_session
from pgqueue_admin.workers.processes.registry import DeclaredEndpoint

log = logging.getLogger(__name__)

APART = (
    "Django's models in handlers of %s write outside of the outbox's transaction, and after a crash once more: "
    "DATABASE_URL and QUEUES_URL do not name one database and one role, spelt alike."
)


def make_usable() -> None:
    """Without it, one restart of the models' database would fail a handler's models for ever.

    Checks only sessions with an error: Django's ``close_old_connections`` would open one per message.
    """
    for connection in connections.all(initialized_only=True):
        if connection.errors_occurred and not connection.in_atomic_block:
            if not connection.is_usable():
                connection.close()
            connection.errors_occurred = False


def kept_usable(get_next: Handler) -> Handler:
    """A behaviour."""

    def around(message: Any, context: MessageContext) -> None:
        make_usable()
        get_next(message, context)

    return around


def joining(declared: DeclaredEndpoint, has_outbox: bool = False) -> BehaviourChain:
    """Behaviours that let handlers' models write in the message's transaction, where that is possible."""
    usable = BehaviourChain(behaviours=(kept_usable,))
    if not declared.models_join:
        return usable
    if shared_session.is_one_database():
        return usable | BehaviourChain(behaviours=(joined,))
    if has_outbox:
        log.warning(APART, declared.name)
    return usable


def joined(get_next: Handler) -> Handler:
    """A behaviour. If the message has no transaction, models commit by themselves."""

    def around(message: Any, context: MessageContext) -> None:
        if not context.lends_connection:
            return get_next(message, context)
        with shared_session.shared(context):
            get_next(message, context)
        if left := context.after_commit:
            left.insert(0, make_usable)  # these calls use Django's own sessions

    return around
