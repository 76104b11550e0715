"""The run of one endpoint process: its handlers, its engine, its reports; pause, resume and drain."""

import logging
import sys
import threading
from collections.abc import Callable
from functools import partial

from django.conf import settings as django_settings

from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models import Process
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.osproc import gc_freeze
from pgqueue_admin.transport.endpoint import Endpoint
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.workers.processes import endpoint_settings, registry
from pgqueue_admin.workers.processes.django_sessions import kept_usable
from pgqueue_admin.workers.processes.exhausted_port import archive_failed
from pgqueue_admin.workers.processes.registry import DeclaredEndpoint
from pgqueue_admin.workers.processes.retried_port import MarkingHandlers
from pgqueue_admin.workers.processes.shutdown_signal import ShutdownSignal
from pgqueue_admin.workers.reporting import code_version, liveness_file, process_identity, run_directory
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.metrics import Counters
from pgqueue_admin.workers.reporting.reporter import Reporter

log = logging.getLogger(__name__)
State = Process.State


def run(name: str) -> int:
    """Until SIGTERM. Returns the exit code."""
    liveness_file.keep_beating()  # before the applications' handlers are imported: that may take its time
    declared = registry.find().get(name)
    if declared is None:
        log.error("No application declares the endpoint %s: write endpoint(%r) in its handlers.py.", name, name)
        return 1
    row = endpoint_settings.row_at_start(name)
    if declared.instance and row.desired_processes > 1:
        _cannot_start(name, f"Its instance {declared.instance} is one process, and {row.desired_processes} are wanted.")
        return 1
    return EndpointProcess(row, declared).run()


def _cannot_start(name: str, why: str) -> None:
    print(f"{name} cannot start. {why}", file=sys.stderr)  # the last line is what pages show


class EndpointProcess:
    """Implements registry.Company."""

    def __init__(self, row: Row, declared: DeclaredEndpoint):
        self.row, self.declared = row, declared
        self.counters = Counters(InFlightFile(run_directory.in_hand_file(process_identity.mine())))
        self.reporter = Reporter(
            row, self.counters, self._apply, self._state, code_version.of_modules(declared.modules)
        )
        self.stopping = threading.Event()
        self.ending = ShutdownSignal()
        self.failure: Exception | None = None
        self.endpoint = Endpoint(
            row.name,
            queue_database().dsn,
            settings=endpoint_settings.of_row(row),
            handlers=MarkingHandlers(declared, row.name),
            exhausted=archive_failed,
            observer=self.counters,
            schema=row.schema,
            instance=declared.instance,
            serializers=declared.serializers,
            pipeline=BehaviourChain(behaviours=(kept_usable,)) | declared.pipeline,
            answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
        )
        self.reporter.breakers = self.endpoint.breakers

    @property
    def paused(self) -> bool:
        return self.row.paused

    def run(self) -> int:
        self._pause_or_resume()
        gc_freeze.settle()
        if not self._started():
            return 1
        self._beside(self._watch)
        for companion in self.declared.companions:
            self._beside(partial(companion, self))
        self.reporter.link.start()
        while not self.ending.wait():  # any signal for which an application has a handler ends one wait
            pass
        return self._end()

    def _started(self) -> bool:
        try:
            self.endpoint.start()
        except QueueUnfit as error:
            log.error("%s", error)
            _cannot_start(self.row.name, error.said)
            return False
        return True

    def _watch(self) -> None:
        self.endpoint.wait()
        if not self.stopping.is_set():
            raise RuntimeError("the receive loop ended by itself")

    def _beside(self, run: Callable[[], None]) -> None:
        threading.Thread(target=self._guarded, args=[run], daemon=True).start()

    def _guarded(self, run: Callable[[], None]) -> None:
        """What runs beside and fails ends the process: the supervisor starts it again, and shows why."""
        try:
            run()
        except Exception as error:
            log.exception("%s cannot go on.", self.row.name)
            self.failure = error
            self.ending.ask()

    def _apply(self, row: Row) -> None:
        """C5: a change is taken while it runs."""
        self.endpoint.apply(endpoint_settings.of_row(row))
        self.row = row
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        if self.row.paused:
            self.endpoint.pause()
        else:
            self.endpoint.resume()

    def _state(self) -> str:
        if self.stopping.is_set():
            return State.DRAINING
        return State.PAUSED if self.paused else State.RUNNING

    def _end(self) -> int:
        self.stopping.set()
        self.reporter.soon()
        if not self.endpoint.stop(self.row.drain_seconds):
            log.warning("Not all was done in %d s; what was in hand is back in the queue.", self.row.drain_seconds)
        self.reporter.link.stop(2.0)
        return 1 if self.failure else 0
