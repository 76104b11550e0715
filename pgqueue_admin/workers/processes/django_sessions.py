"""Django's sessions in threads that handle messages: nothing there closes a lost one, as a web request's end does."""

from typing import Any

from django.db import connections

from pgqueue_admin.transport import MessageContext
from pgqueue_admin.transport.handling.context import Handler


def make_usable() -> None:
    """Without it, a handler that uses models fails for ever after one restart of their database.

    Only a session on which something failed is asked: Django's ``close_old_connections`` would open one per message.
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
