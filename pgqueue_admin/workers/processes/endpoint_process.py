"""One endpoint process: handlers, engine, reports; pause, resume and drain."""

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models import Process
from pgqueue_admin.osproc import gc_freeze
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.errors import QueueUnfit
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.workers.processes import endpoint_settings, registry, runnable
from pgqueue_admin.workers.processes.registry import Declared, DeclaredEndpoint
from pgqueue_admin.workers.processes.runnable import Runnable
from pgqueue_admin.workers.processes.wakeup_pipe import ShutdownSignal
from pgqueue_admin.workers.reporting import liveness_file, process_identity, process_stats, run_directory
from pgqueue_admin.workers.reporting.in_flight_file import InFlightFile
from pgqueue_admin.workers.reporting.metrics import Counters
from pgqueue_admin.workers.reporting.reporter import Reporter

log = logging.getLogger(__name__)
State = Process.State


class _Kind(NamedTuple):
    """How rows of a kind are run, and which settings their Runnable takes."""

    made: Callable[[Row, Any, Observer], Runnable[Any]]
    settings: Callable[[Row], Any]


_KINDS = {
    Row.Kind.TRANSPORT: _Kind(runnable.transport_endpoint, endpoint_settings.of_row),
    Row.Kind.LEASE: _Kind(runnable.lease_worker, endpoint_settings.lease_settings_of),
}


def run(name: str) -> int:
    """Run until SIGTERM; return the exit code."""
    liveness_file.keep_beating()  # before handler modules are imported, which may take long
    declared = registry.find().get(name)
    if declared is None:
        log.error("No application declares the endpoint %s: write endpoint(%r) in its handlers.py.", name, name)
        return 1
    row = endpoint_settings.row_at_start(name)
    if why := _unrunnable(row, declared):
        _cannot_start(name, why)
        return 1
    return EndpointProcess(row, declared).run()


def _unrunnable(row: Row, declared: Declared) -> str:
    """Why its declaration contradicts its row, or ""."""
    if declared.kind != row.kind:
        return f"Its application declares it as an endpoint of the kind {declared.kind}, and here it is of {row.kind}."
    if isinstance(declared, DeclaredEndpoint) and declared.instance and row.desired_processes > 1:
        return f"Its instance {declared.instance} is one process, and {row.desired_processes} are wanted."
    return ""


def _cannot_start(name: str, why: str) -> None:
    print(f"{name} cannot start. {why}", file=sys.stderr)  # pages show the last line


@dataclass(frozen=True)
class _EndpointProcessContext:
    """Implements registry.ProcessContext."""

    endpoint: Endpoint
    process: "EndpointProcess"

    @property
    def stopping(self) -> threading.Event:
        return self.process.stopping

    @property
    def paused(self) -> bool:
        return self.process.paused


class EndpointProcess:
    def __init__(self, row: Row, declared: Declared):
        self.row, self.declared = row, declared
        self.counters = Counters(InFlightFile(run_directory.in_hand_file(process_identity.mine())))
        self.reporter = Reporter(
            row, self.counters, self._apply, self._state, process_stats.of_modules(declared.modules)
        )
        self.stopping = threading.Event()
        self.ending = ShutdownSignal()
        self.failure: Exception | None = None
        self._kind = _KINDS[Row.Kind(row.kind)]
        self.endpoint = self._kind.made(row, declared, self.counters)
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
        self._begin_companions()
        self.reporter.link.start()
        while not self.ending.wait():  # a signal that an application handles also ends a wait
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

    def _begin_companions(self) -> None:
        if isinstance(self.declared, DeclaredEndpoint) and isinstance(self.endpoint, Endpoint):
            for companion in self.declared.companions:
                self._beside(partial(companion, _EndpointProcessContext(self.endpoint, self)))

    def _watch(self) -> None:
        self.endpoint.wait()
        if not self.stopping.is_set():
            raise RuntimeError("the receive loop ended by itself")

    def _beside(self, run: Callable[[], None]) -> None:
        threading.Thread(target=self._guarded, args=[run], daemon=True).start()

    def _guarded(self, run: Callable[[], None]) -> None:
        """An error in a side thread ends the process; the supervisor starts it again and shows the error."""
        try:
            run()
        except Exception as error:
            log.exception("%s cannot go on.", self.row.name)
            self.failure = error
            self.ending.ask()

    def _apply(self, row: Row) -> None:
        """C5: apply a change while the process runs."""
        self.endpoint.apply(self._kind.settings(row))
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
            log.warning(
                "Not all was done in %d s; what was in flight comes back as after a crash.", self.row.drain_seconds
            )
        self.reporter.link.stop(2.0)
        return 1 if self.failure else 0
