"""Messages that end their process: those that have left their queue since are settled, the others warned of."""

import logging

from pgqueue_admin.archive import move_to_archive
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import crashing_messages
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.models.queue_database import queue_database

log = logging.getLogger("pgqueue.alerts")


def still_there() -> list[CrashingMessage]:
    """While their queues cannot be looked at, all of them stay."""
    suspects = crashing_messages.suspects()
    try:
        return [each for each in suspects if _is_there(each)]
    except DatabaseError:
        return suspects


def _is_there(found: CrashingMessage) -> bool:
    with queue_database().reading() as connection:
        if move_to_archive.is_there(connection, found.address, found.row_id):
            return True
    crashing_messages.settle(found.row_id)
    log.info("Message %s of %s has left its queue.", found.row_id, found.endpoint)
    return False
