"""Messages that end their process: those that have left their queue since are settled, the others warned of."""

import logging

from pgqueue_admin.archive import moving_out
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.records import fatal
from pgqueue_admin.records.fatal import Fatal
from pgqueue_admin.records.source import source

log = logging.getLogger("pgqueue.alerts")


def still_there() -> list[Fatal]:
    """While their queues cannot be looked at, all of them stay."""
    suspects = fatal.suspects()
    try:
        return [each for each in suspects if _is_there(each)]
    except DatabaseError:
        return suspects


def _is_there(found: Fatal) -> bool:
    with source().reading() as connection:
        if moving_out.is_there(connection, found.address, found.row_id):
            return True
    fatal.settle(found.row_id)
    log.info("Message %s of %s has left its queue.", found.row_id, found.endpoint)
    return False
