"""The ingester process: moves messages from error queues into the archive (C4)."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import django.db
from django.conf import settings
from django.db import connections, transaction
from django.db.models.functions import Now

from pgqueue_admin.archive import ingester
from pgqueue_admin.archive.crossing_in import TakenRows
from pgqueue_admin.archive.ingester import Ingested
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.models import Cursor, Queue
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.models.ingest_status import cannot_empty
from pgqueue_admin.models.queue_database import QueueDatabase, queue_database, queues_in
from pgqueue_admin.services import queues
from pgqueue_admin.services.operations import crossings
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.liveness_file import LivenessFile
from pgqueue_admin.workers.supervisor.process_recorder import record

# Error queues to ingest: chosen by a person, for this database, and still error queues.
log = logging.getLogger(__name__)
NAME = "ingester"


class IngestSelection:
    """Keeps the last known choice while the console's database is down. ``of``: another database; None: the first."""

    def __init__(self, of: QueueDatabase | None = None) -> None:
        self._of = of or queue_database()
        self._queues: list[Address] = []
        self._sure = False

    def read(self) -> list[Address]:
        """Raises DatabaseError."""
        try:
            self._sure = self._sure or _made_for(self._of)
            self._queues = chosen(self._of)
        except django.db.Error:
            connections["default"].close()
        return self._queues


def chosen(of: QueueDatabase) -> list[Address]:
    schemas = [of.dialect.address(each, "").schema for each in of.schemas]
    allowed = {"schema__in": schemas, "kind": "error", "gone_since": None}
    return [Address(*names) for names in Queue.objects.filter(ingest=True, **allowed).values_list("schema", "table")]


def _made_for(of: QueueDatabase) -> bool:
    """Ensure that the choice was made for this database: in another one, a queue of the same name is another queue."""
    assert of.dialect.crossings is not None
    with of.write_session(settings.PGQUEUE["ANSWER_SECONDS"]) as session:
        position = {"database": of.dialect.crossings.here(session)}
    name = f"{NAME} of {of.alias}" if of.alias else NAME
    with transaction.atomic():
        place, _ = Cursor.objects.select_for_update().get_or_create(name=name, defaults={"position": position})
        if place.position != position:
            _switch_off(of.alias)
            place.position = position
            place.save()
    return True


def _switch_off(alias: str) -> None:
    variable = f"QUEUES_URL_{alias.upper()}" if alias else "QUEUES_URL"
    why = f"{variable} names another database than the one for which this was switched on"
    for queue in queues_in(alias).filter(ingest=True):
        queues.save_settings(queue, {"ingest": False}, NAME, "ingester", reason=why)
        log.warning("%s is no longer emptied into the archive: %s.", queue, why)


NOTHING = Ingested(0, 0, False)
SECONDS = 1.0  # foreign endpoints do not notify
AT_MOST = 5.0  # seconds per turn: a flood must not delay heartbeats or the shutdown


def run(of: QueueDatabase | None = None) -> None:
    """Run until SIGTERM or SIGINT. ``of``: another database; None: the first."""
    only_short_ones_here()
    ending, process, pulse = ShutdownSignal(), IngesterProcess(of), LivenessFile()
    while not ending.asked:
        pulse.beat()
        more = process.run_once()
        ending.wait(0 if more else SECONDS)


class IngesterProcess:
    """Ingestion is opt-in per queue."""

    def __init__(self, of: QueueDatabase | None = None) -> None:
        self._me = process_identity.mine()
        self._of = of
        self._role = {"role": "source-ingester", "endpoint": of.alias} if of else {"role": "ingester"}
        self._received = 0
        self._choice = IngestSelection(of)
        self._trouble: dict[Address | None, str] = {}

    def run_once(self) -> bool:
        """Visit every queue once; return whether there is more."""
        self._report()
        more, until = False, time.monotonic() + AT_MOST
        try:
            with self._emptying() as batch_of:
                for queue in self._choice.read():
                    more |= self._empty(batch_of, queue, until)
            self._note(None, "")
        except DatabaseError as error:
            self._note(None, str(error))
        return more

    @contextmanager
    def _emptying(self) -> Iterator[Callable[[Address], Ingested]]:
        """The function that moves a batch of a queue. Takes nothing from another database while a crossing's outcome is
        unknown: a retried message that died again would arrive before its retry is recorded."""
        if self._of is None:
            own_code = settings.PGQUEUE["OWN_CODE"]
            with queue_database().write_session(settings.PGQUEUE["ANSWER_SECONDS"]) as connection:
                yield lambda queue: ingester.ingest(connection, queue, own_code=own_code)
        else:
            of, clear = self._of, crossings.is_clear
            yield lambda queue: _of_other(crossings.take_in(of, queue)) if clear(of.alias) else NOTHING

    def _report(self) -> None:
        try:
            record(self._me, {**self._role, "state": "running", "heartbeat_at": Now(), **self._facts()})
        except django.db.Error:
            connections["default"].close()

    def _facts(self) -> dict[str, object]:
        trouble = "; ".join(_told(where, sentence) for where, sentence in self._trouble.items() if sentence)
        return {**process_stats.facts(), "received": self._received, "last_error": trouble}

    def _empty(self, batch_of: Callable[[Address], Ingested], queue: Address, until: float) -> bool:
        """Move at least one batch of the queue, more while there is time; return whether there is more."""
        more = True
        try:
            while more:
                batch = batch_of(queue)
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
        """Log when a problem begins and when it ends, not every second."""
        if trouble and not self._trouble.get(where):
            log.warning("%s", _told(where, trouble))
        elif not trouble and self._trouble.get(where):
            log.warning("Emptying %s again.", ".".join(where) if where else "the error queues")
        self._trouble[where] = trouble


def _of_other(taken: TakenRows) -> Ingested:
    return Ingested(len(taken.rows), 0, taken.full)


def _told(where: Address | None, trouble: str) -> str:
    return f"{cannot_empty(where)} {trouble}"
