"""One reading of the archive, as the alerter does it."""

from collections.abc import Callable

from django.db import transaction

from pgqueue_admin.alerts import dead_message_cursor
from pgqueue_admin.alerts.dead_message_cursor import CursorReading, DeadMessageCursor
from pgqueue_admin.models.queue_database import queue_database

Die = Callable[..., None]


def read() -> CursorReading:
    with transaction.atomic(), dead_message_cursor.cursor() as cursor:
        return DeadMessageCursor().read(queue_database(), cursor)


def died(reading: CursorReading) -> dict[tuple[str, str], int]:
    return {(each.queue, each.cause): each.count for each in reading.deaths}
