"""Celery's worker and beat report like every other process of ours: a row with heartbeats, and their log."""

import atexit
import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any

import django.db
from celery.signals import beat_init, task_failure, task_postrun, task_prerun, worker_init, worker_ready
from django.db import connections
from django.db.models.functions import Now

from pgqueue_admin.models import Process
from pgqueue_admin.models.db_backend.base import only_short_ones_here
from pgqueue_admin.workers.reporting import liveness_file, process_identity, process_stats
from pgqueue_admin.workers.reporting.throughput import BusyTime, RateCounter
from pgqueue_admin.workers.supervisor import process_recorder

log = logging.getLogger(__name__)
EVERY = 2.0
LAST_BEAT = 5.0  # seconds that a heartbeat in progress may take before the end is reported
State = Process.State


class RunningTasks:
    """Counters of a worker, called from the threads that run its tasks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._busy, self._done = BusyTime(), RateCounter(time.monotonic())
        self.received = self.handled = self.failed = 0
        self.last_error = ""
        self.last_error_at: datetime | None = None

    def began(self, **signal: Any) -> None:
        with self._lock:
            self.received += 1
            self._busy.take(threading.get_ident())

    def ended(self, state: str = "", **signal: Any) -> None:
        with self._lock:
            self._busy.put_down(threading.get_ident())
            self.handled += state == "SUCCESS"
            self._done.add(time.monotonic())

    def broke(self, sender: Any = None, exception: BaseException | None = None, **signal: Any) -> None:
        with self._lock:
            self.failed += 1
            self.last_error_at = datetime.now(UTC)
            self.last_error = f"{getattr(sender, 'name', 'a task')}: {type(exception).__name__}: {exception}"[:2_000]

    def row(self, slots: int) -> dict[str, Any]:
        with self._lock:
            counts = {"received": self.received, "handled": self.handled, "failed": self.failed}
            busy = {"slots": slots, "busy": self._busy.busy, "busy_share": self._busy.share(slots)}
            pace = self._done.per_second(time.monotonic())
            error = {"last_error": self.last_error, "last_error_at": self.last_error_at}
            return {**counts, **busy, **error, "handled_per_second": pace}


class HeartbeatThread(threading.Thread):
    """No outage ends it; the next heartbeat reports what an earlier one could not."""

    def __init__(self, role: str, tasks: RunningTasks | None = None, slots: int = 0):
        super().__init__(name=f"pgqueue {role} reports", daemon=True)
        self._role, self._tasks, self._slots = role, tasks, slots
        self._me, self._began = process_identity.mine(), datetime.now(UTC)
        self._over = threading.Event()

    def run(self) -> None:
        only_short_ones_here()
        self._say(lambda: process_recorder.close_dead(self._me.host, self._role))
        while not self._over.is_set():
            self._say(self.beat)
            self._over.wait(EVERY)

    def beat(self) -> None:
        said = {"role": self._role, "state": State.RUNNING, "heartbeat_at": Now(), "started_at": self._began}
        counted = self._tasks.row(self._slots) if self._tasks else {}
        process_recorder.record(self._me, {**said, **process_stats.facts(), **counted})

    def end(self) -> None:
        self._over.set()
        self.join(LAST_BEAT)
        self._say(
            lambda: process_recorder.record(self._me, {"role": self._role, "state": State.STOPPED, "ended_at": Now()})
        )

    def _say(self, what: Any) -> None:
        try:
            what()
        except django.db.Error as error:
            log.debug("The console's database does not take a heartbeat: %s", error)
        finally:
            connections["default"].close()


def report(role: str, tasks: RunningTasks | None = None, slots: int = 0) -> HeartbeatThread:
    reporting = HeartbeatThread(role, tasks, slots)
    reporting.start()
    atexit.register(reporting.end)
    return reporting


@worker_init.connect
@beat_init.connect
def _lives(**signal: Any) -> None:
    """Begin before the broker answers: a worker that waits for it does not hang."""
    liveness_file.keep_beating()


@worker_ready.connect
def _worker_is_ready(sender: Any, **signal: Any) -> None:
    tasks = RunningTasks()
    for connected, told in ((task_prerun, tasks.began), (task_postrun, tasks.ended), (task_failure, tasks.broke)):
        connected.connect(told, weak=False)
    report("celery-worker", tasks, sender.pool.limit)  # the sender is the consumer, which has the worker's pool


@beat_init.connect
def _beat_begins(**signal: Any) -> None:
    only_short_ones_here()  # in the thread that checks what is due
    connections["default"].close()
    report("celery-beat")
