"""The reporter thread of a child: reads settings, sends heartbeats."""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.db.models.functions import Now

from pgqueue_admin.archive.messages import clean
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Endpoint, caught_duplicates, notify
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers
from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.workers.processes import ttbr_recorder
from pgqueue_admin.workers.processes.console_session import ConsoleSession
from pgqueue_admin.workers.reporting import process_identity, process_stats
from pgqueue_admin.workers.reporting.metrics import Counters
from pgqueue_admin.workers.supervisor.process_recorder import record

log = logging.getLogger(__name__)


class Reporter:
    """Implements console_session.ConsoleWork. While that database is down, the child keeps its last known settings."""

    def __init__(
        self,
        row: Endpoint,
        counters: Counters,
        apply: Callable[[Endpoint], None],
        state: Callable[[], str],
        code: str = "",
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self.me = process_identity.mine()
        self._code = code or process_stats.code_version()
        self.row, self.counters, self._apply, self._state = row, counters, apply, state
        self.link = ConsoleSession(f"pgqueue worker {row.name} pid {self.me.pid}"[:63], self)
        self._began_with = row.version
        self._taken: dict[str, Any] = {"settings_version": row.version}  # from the start, not applied while running
        self._told_ttbrs: ttbr_recorder.Ttbrs = {}
        self._monotonic = monotonic
        self._tell_again_at = monotonic() + ttbr_recorder.AGAIN_AFTER.total_seconds()
        self._told_lost: dict[str, int] = {}
        self._told_duplicates: int | None = None
        self._told_state = ""
        self.breakers = CircuitBreakers()  # replaced by the endpoint's own

    def soon(self) -> None:
        """The state has changed: report it before the next beat."""
        self.link.waker.set()

    def connected(self, connection: Connection) -> None:
        self._read()

    def heard(self, names: list[str]) -> None:
        if self.row.name in names:
            self._read()

    def beat(self) -> None:
        record(self.me, {**self._who(), **self.counters.row(self.row.concurrency), **self._taken})
        self._taken.pop("settings_at", None)
        self._announce(self._state())
        self._tell_ttbrs()
        self._tell_duplicates()
        self._told_lost = ttbr_recorder.lost(self.row, self.counters.lost(), self._told_lost)

    def _tell_duplicates(self) -> None:
        """The first report includes zero."""
        seen = self.counters.duplicates
        if self.row.has_outbox and seen != self._told_duplicates:
            caught_duplicates.add(self.row.name, seen - (self._told_duplicates or 0))
            self._told_duplicates = seen

    def _tell_ttbrs(self) -> None:
        """Repeated from time to time: else a TTBR that its sender has raised would stay the smallest for ever."""
        self._told_ttbrs = ttbr_recorder.keep(self.row, self.counters.ttbrs(), self._told_ttbrs)
        if self._monotonic() > self._tell_again_at:
            self.counters.forget_ttbrs(self._told_ttbrs)
            self._told_ttbrs = {}
            self._tell_again_at = self._monotonic() + ttbr_recorder.AGAIN_AFTER.total_seconds()

    def _announce(self, state: str) -> None:
        if state != self._told_state:
            notify.announce(notify.PROCESS, self.row.name)
        self._told_state = state

    def _read(self) -> None:
        row = Endpoint.objects.filter(name=self.row.name).first()
        if row and row.version != self.row.version:
            self.row = row
            self._take(row)

    def _take(self, row: Endpoint) -> None:
        try:
            self._apply(row)
            self._taken = {"settings_version": row.version, "settings_at": Now()}
        except SettingsRefused as error:  # a row written without services.endpoints: the former values hold
            log.error("Settings version %d is refused: %s", row.version, error)
            self.counters.went_wrong(f"settings version {row.version} refused: {error}")

    def _who(self) -> dict[str, Any]:
        return {
            "role": "endpoint",
            "endpoint": self.row.name,
            "state": self._state(),
            "started_version": self._began_with,
            "slots": self.row.concurrency,
            "heartbeat_at": Now(),
            "memory_bytes": process_stats.memory_bytes(),
            "code_version": self._code,
            "breakers": self._open_breakers(),
        }

    def _open_breakers(self) -> list[dict[str, Any]]:
        found = [trouble for trouble in self.breakers.troubles() if trouble.triggered]
        return [{**trouble._asdict(), "error": clean(trouble.error)} for trouble in found]
