"""Keeps the error queues empty that are to be: what arrives there is moved into the archive (C4)."""

import logging
import time

import django.db
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.archive import ingester
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.ingest_status import cannot_empty
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.workers.processes.ingest_selection import IngestSelection
from pgqueue_admin.workers.processes.shutdown_signal import ShutdownSignal
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.supervisor.process_recorder import record

log = logging.getLogger(__name__)
SECONDS = 1.0  # foreign endpoints send no wake-up
AT_MOST = 5.0  # seconds of one turn: a flood must not keep it from its heartbeat, nor from being asked to end


def run() -> None:
    """Until SIGTERM or SIGINT."""
    only_short_ones_here()
    ending, ingesting, pulse = ShutdownSignal(), IngesterProcess(), LivenessFile()
    while not ending.asked:
        pulse.beat()
        more = ingesting.turn()
        ending.wait(0 if more else SECONDS)


class IngesterProcess:
    """Ingestion is opt-in per queue."""

    def __init__(self) -> None:
        self._me = process_identity.mine()
        self._received = 0
        self._choice = IngestSelection()
        self._trouble: dict[Address | None, str] = {}

    def turn(self) -> bool:
        """Once over every queue; whether there is more to take."""
        self._report()
        more, until = False, time.monotonic() + AT_MOST
        try:
            with queue_database().writing(settings.PGQUEUE["ANSWER_SECONDS"]) as connection:
                for queue in self._choice.read(connection):
                    more |= self._empty(connection, queue, until)
            self._note(None, "")
        except DatabaseError as error:
            self._note(None, str(error))
        return more

    def _report(self) -> None:
        try:
            record(self._me, {"role": "ingester", "state": "running", "heartbeat_at": Now(), **self._facts()})
        except django.db.Error:
            connections["default"].close()

    def _facts(self) -> dict[str, object]:
        trouble = "; ".join(_told(where, sentence) for where, sentence in self._trouble.items() if sentence)
        return {**process_stats.facts(), "received": self._received, "last_error": trouble}

    def _empty(self, connection: Connection, queue: Address, until: float) -> bool:
        """At least one batch of each queue, more while there is time; whether there is more."""
        more = True
        try:
            while more:
                batch = ingester.ingest(connection, queue, own_code=settings.PGQUEUE["OWN_CODE"])
                self._received, more = self._received + batch.moved, batch.full
                if time.monotonic() > until:
                    break
            self._note(queue, "")
        except DatabaseDown:
            raise
        except DatabaseError as error:
            self._note(queue, str(error))
            more = False
        return more

    def _note(self, where: Address | None, trouble: str) -> None:
        """Once when it begins, once when it is over: not every second."""
        if trouble and not self._trouble.get(where):
            log.warning("%s", _told(where, trouble))
        elif not trouble and self._trouble.get(where):
            log.warning("Emptying %s again.", ".".join(where) if where else "the error queues")
        self._trouble[where] = trouble


def _told(where: Address | None, trouble: str) -> str:
    return f"{cannot_empty(where)} {trouble}"
