"""Callbacks that handlers registered to run after the commit."""

import logging
from collections.abc import Callable

from pgqueue_admin.transport.logs import about
from pgqueue_admin.transport.wire.message import IncomingMessage

log = logging.getLogger("pgqueue_admin.transport")


def call(left: list[Callable[[], None]], message: IncomingMessage) -> None:
    """Call each once, in order. An error, even an exit, is only logged: the message is already committed."""
    while left:
        try:
            left.pop(0)()
        except BaseException:
            said = "Message %s is committed; what its handler left to be called after that failed."
            log.exception(said, message.message_id, extra=about(message))
