"""The process that runs trials: one message after the other, each with a limit. A hung handler ends the process."""

import logging
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import django.db
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models import TrialItem
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport import Endpoint, Handlers
from pgqueue_admin.transport.handling.context import Handler
from pgqueue_admin.transport.sync_call import name_of
from pgqueue_admin.workers.processes import endpoint_settings, registry
from pgqueue_admin.workers.processes.advisory_lock import SingletonLock
from pgqueue_admin.workers.processes.django_sessions import joining
from pgqueue_admin.workers.processes.registry import DeclaredEndpoint
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import liveness_file, process_identity, process_stats
from pgqueue_admin.workers.supervisor.process_recorder import record
from pgqueue_admin.workers.trials import message_trial
from pgqueue_admin.workers.trials.message_trial import TrialResult
from pgqueue_admin.workers.trials.trial_transaction import LIMIT_SECONDS, CannotTry

log = logging.getLogger(__name__)
ROLE = "trial"
REST = 0.5  # seconds between checks while there is nothing to try
Outcome = TrialItem.Outcome
ENDED = "The process ended while it was tried."
TOO_LONG = "It took longer than {:g} s, and its process was ended."


def run() -> None:
    """Run until SIGTERM."""
    liveness_file.keep_beating()
    ending, process = ShutdownSignal(), TrialProcess(registry.find())
    while not ending.asked:
        if not process.run_once():
            ending.wait(REST)
    process.close()


class TrialProcess:
    def __init__(self, declared: dict[str, registry.Declared], limit: float = LIMIT_SECONDS):
        self._declared, self._limit = declared, limit
        self._me, self._sole = process_identity.mine(), SingletonLock(ROLE)
        self._done, self._trouble = 0, ""

    def run_once(self) -> bool:
        """Try one message; False if there is none, or a database is down."""
        try:
            record(self._me, self._facts())
            if not self._sole.mine():
                return False
            self._give_up_begun()
            item = TrialItem.objects.to_try().first()
            if item is None or not self._begins(item):
                return False
            self._end(item.pk, self._tried(item))
        except (DatabaseError, django.db.Error) as error:
            log.warning("Trials wait: %s", error)
            connections["default"].close()
            return False
        self._done += 1
        return True

    def close(self) -> None:
        self._sole.resign()

    def _facts(self) -> dict[str, object]:
        return {"role": ROLE, "state": "running", "heartbeat_at": Now(), "handled": self._done, **process_stats.facts()}

    def _give_up_begun(self) -> None:
        """This process is the only one and tries nothing now: items already begun belong to an ended process."""
        TrialItem.objects.filter(outcome="").exclude(began_at=None).update(
            outcome=Outcome.UNKNOWN, why=ENDED, ended_at=Now()
        )

    def _begins(self, item: TrialItem) -> bool:
        return bool(TrialItem.objects.filter(pk=item.pk, began_at=None, outcome="").update(began_at=Now()))

    def _end(self, pk: int, tried: TrialResult) -> None:
        facts = {name: getattr(tried, name) for name in TrialResult.__dataclass_fields__}
        TrialItem.objects.filter(pk=pk, outcome="").update(**facts, ended_at=Now())

    def _tried(self, item: TrialItem) -> TrialResult:
        row, declared = Row.objects.filter(name=item.endpoint).first(), self._declared.get(item.endpoint)
        if row is None or not isinstance(declared, DeclaredEndpoint):
            return TrialResult(Outcome.REFUSED, f"No application here declares the endpoint {item.endpoint}.")
        endpoint = self._made(row, declared)
        try:
            with self._limited(item.pk), queue_database().read_session() as connection:
                return message_trial.run(endpoint, item.archive_id, connection)
        except DatabaseError as error:
            return TrialResult(Outcome.UNKNOWN, f"A database did not answer: {error}")
        finally:
            endpoint.stop(0)

    def _made(self, row: Row, declared: DeclaredEndpoint) -> Endpoint:
        """As its own process builds it, but without marks, archive and counters; never started."""
        return Endpoint(
            row.name,
            queue_database().dsn,
            settings=endpoint_settings.of_row(row),
            handlers=WillingHandlers(declared),
            schema=row.schema,
            serializers=declared.serializers,
            pipeline=joining(declared) | declared.pipeline,
        )

    @contextmanager
    def _limited(self, pk: int) -> Iterator[None]:
        """Nothing else ends a hung handler: the process is killed, and its successor tries the next message."""
        timer = threading.Timer(self._limit, self._hung, [pk])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _hung(self, pk: int) -> None:
        try:
            self._end(pk, TrialResult(Outcome.UNKNOWN, TOO_LONG.format(self._limit)))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)


# An endpoint's handlers for a trial: a message is not tried unless all its handlers opted in.
class WillingHandlers(Handlers):
    """Also checked after a mutator has changed the message's types."""

    def __init__(self, handlers: Handlers):
        super().__init__(handlers.unrecoverable)
        self._handlers = handlers

    def of(self, types: Sequence[str]) -> Sequence[Handler]:
        """Raises CannotTry."""
        if unwilling := self._handlers.without_trial(types):
            raise CannotTry(f"{', '.join(map(name_of, unwilling))} is not declared with trial=True.")
        return self._handlers.of(types)

    @property
    def types(self) -> list[str]:
        return self._handlers.types
