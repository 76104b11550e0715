"""Which error queues are to be emptied: chosen by a person, in this database, and still error queues."""

import logging

import django.db
from django.conf import settings
from django.db import connections, transaction

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Cursor, Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queues

log = logging.getLogger(__name__)
NAME = "ingester"


class IngestSelection:
    """While the console's database is away the last known choice holds."""

    def __init__(self) -> None:
        self._queues: list[Address] = []
        self._sure = False

    def read(self, connection: Connection) -> list[Address]:
        try:
            self._sure = self._sure or _made_for(connection)
            self._queues = chosen()
        except django.db.Error:
            connections["default"].close()
        return self._queues


def chosen() -> list[Address]:
    allowed = {"schema__in": settings.PGQUEUE["SCHEMAS"], "kind": "error", "gone_since": None}
    return [Address(*names) for names in Queue.objects.filter(ingest=True, **allowed).values_list("schema", "table")]


def _made_for(connection: Connection) -> bool:
    """The choice was made for a database: in another one, a queue of the same name is somebody else's."""
    here = connection.one(queue_database().dialect.alerts.here()).database  # type: ignore[union-attr]
    position = {"database": here}
    with transaction.atomic():
        place, _ = Cursor.objects.select_for_update().get_or_create(name=NAME, defaults={"position": position})
        if place.position != position:
            _switch_off()
            place.position = position
            place.save()
    return True


def _switch_off() -> None:
    why = "QUEUES_URL names another database than the one for which this was switched on"
    for queue in Queue.objects.filter(ingest=True):
        queues.save_settings(queue, {"ingest": False}, NAME, "ingester", reason=why)
        log.warning("%s is no longer emptied into the archive: %s.", queue, why)
