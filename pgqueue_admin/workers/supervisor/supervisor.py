"""The supervisor: keeps the desired processes running. One per host; never waits for a database."""

import logging
import signal
import time
from types import FrameType

from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.workers.reporting import run_directory
from pgqueue_admin.workers.supervisor import systemd_notify
from pgqueue_admin.workers.supervisor.process_group import ProcessGroup
from pgqueue_admin.workers.supervisor.role import Role, RoleKey
from pgqueue_admin.workers.supervisor.supervisor_store import SupervisorStore

log = logging.getLogger(__name__)
TICK = 0.5
LOGS_EVERY = 5.0  # seconds


def run(without: frozenset[str] = frozenset()) -> str | None:
    """Run until SIGTERM or SIGINT. Returns why nothing was started: another supervisor on this host, or a pooler."""
    supervisor = Supervisor(SupervisorStore(without))
    supervisor.run()
    return supervisor.store.refused


class Supervisor:
    """The main thread starts and ends processes; the store's thread does all database work."""

    def __init__(self, store: SupervisorStore):
        self.store = store
        self.groups: dict[RoleKey, ProcessGroup] = {}
        self.stopping = False
        self._logs_at = 0.0

    def run(self) -> None:
        self._hear_signals()
        self.store.start()
        systemd_notify.notify("READY=1")  # it works without a database, so it is ready without one
        while not self.stopping or any(group.processes for group in self.groups.values()):
            self.tick()
            self.store.wake_supervisor.wait(TICK)
        self.store.stop()

    def tick(self) -> None:
        systemd_notify.notify("WATCHDOG=1", *(["STOPPING=1"] if self.stopping else []), f"STATUS={self._status()}")
        for group in self.groups.values():
            self._reap(group)
        self._bound_logs()
        self.stopping |= self.store.refused is not None
        self._take_desired(self.store.desired())
        self.store.write_soon()

    def _reap(self, group: ProcessGroup) -> None:
        """An error while reaping one group must not end this process, and all others with it."""
        try:
            group.reap()
        except Exception:
            log.exception("%s was not looked at to the end; the next look is in %.1f s.", group.role.label, TICK)

    def _bound_logs(self) -> None:
        """In the main thread, not the database's: logs grow during an outage."""
        if time.monotonic() - self._logs_at > LOGS_EVERY:
            self._logs_at = time.monotonic()
            run_directory.put_aside_large_logs()

    def _take_desired(self, roles: list[Role] | None) -> None:
        if roles is None and not self.stopping:
            return  # never read yet: the database has been down since the start
        wanted = {} if self.stopping else {role.key: role for role in roles or []}
        for key, role in wanted.items():
            self.groups.setdefault(key, ProcessGroup(role, self.store.recorder)).role = role
        for key in self.store.start_now():
            if key in self.groups:
                self.groups[key].start_now()
        for key, group in self.groups.items():
            group.reconcile(wanted[key].want if key in wanted else 0)

    def _hear_signals(self) -> None:
        signal.set_wakeup_fd(self.store.wake_supervisor.write_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only its byte on the wake-up pipe matters

    def _status(self) -> str:
        count = pluralize(sum(len(group.processes) for group in self.groups.values()), "process", "processes")
        return f"stopping, {count} left" if self.stopping else f"{count} running"

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
