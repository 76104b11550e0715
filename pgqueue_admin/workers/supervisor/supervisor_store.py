"""The supervisor's database thread: host lock, desired state, process events."""

import logging
import threading
import time

from django.db.models.functions import Now

from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Process, TrialItem, foreign_outbox, pooler_check
from pgqueue_admin.workers.processes.advisory_lock import HostLock, SessionLock
from pgqueue_admin.workers.processes.console_session import ConsoleSession
from pgqueue_admin.workers.processes.wakeup_pipe import WakeupPipe
from pgqueue_admin.workers.reporting import in_flight_file, process_identity, process_stats
from pgqueue_admin.workers.supervisor import desired_state as desired
from pgqueue_admin.workers.supervisor.process_recorder import ProcessRecorder, close_rows_without_process, forget_old
from pgqueue_admin.workers.supervisor.role import Role, RoleKey, outbox_keeper, singletons, trial

log = logging.getLogger(__name__)
SCAN_SECONDS = 5.0  # a notification is only a wake-up: desired state is also read without one
BEAT_SECONDS = 0.9  # every beat
_NEVER = float("-inf")


class SupervisorStore:
    """Implements ``console_session.ConsoleWork``; the supervisor's main thread reads it."""

    def __init__(self, without: frozenset[str] = frozenset()):
        self.me = process_identity.mine()
        self.recorder = ProcessRecorder()
        self.wake_supervisor = WakeupPipe()
        self._without = without
        self._link = ConsoleSession(f"pgqueue supervisor {self.me.host} pid {self.me.pid}", self)
        self._host_lock = HostLock(self.me.host)
        self._leader_lock = SessionLock("leader of all")
        self._roles: list[Role] | None = None
        self._start_now: set[RoleKey] = set()
        self._guard = threading.Lock()
        self._scanned = _NEVER
        self._shared = ""  # why session locks do not hold here
        self._ending = False

    # for the supervisor

    @property
    def refused(self) -> str | None:
        """Why nothing may be started here."""
        holder = self._host_lock.refused
        said = f"{holder} keeps the processes of this host." if holder else self._shared
        return f"Nothing was started: {said}" if said else None

    def start(self) -> None:
        self._link.start()

    def stop(self) -> None:
        self._ending = True
        self._link.stop()

    def write_soon(self) -> None:
        if self.recorder.pending:
            self._link.waker.set()

    def desired(self) -> list[Role] | None:
        """The roles as last read; None before the first read."""
        return self._roles

    def start_now(self) -> set[RoleKey]:
        with self._guard:
            asked, self._start_now = self._start_now, set()
            return asked

    @property
    def _rolling(self) -> bool:
        """In a rolling restart, no notification says that the last replacement is ready for the next."""
        return any(role.rolling for role in self._roles or [])

    # for the console session

    def connected(self, connection: Connection) -> None:
        self._host_lock.use(connection)
        self._leader_lock.use(connection)
        if self._roles is None:
            self._refuse_shared_sessions()
        self._scanned = _NEVER

    def heard(self, names: list[str]) -> None:
        self._scanned = _NEVER

    def beat(self) -> None:
        if self._shared or (not self._host_lock.held and not self._take_host()):
            return
        self._note_myself()
        self.recorder.write()
        if time.monotonic() - self._scanned > (BEAT_SECONDS if self._rolling else SCAN_SECONDS):
            self._scan()

    def _refuse_shared_sessions(self) -> None:
        self._shared = " ".join(pooler_check.refusals(["default", "queues"]))
        if self._shared:
            self.wake_supervisor.set()

    def _take_host(self) -> bool:
        if not self._host_lock.take():
            self._link.seconds = 0.2
            self.wake_supervisor.set()  # it may be refused
            return False
        self._link.seconds = 1.0
        if self._roles is None:  # not after an outage: then the rows are those of our own processes
            close_rows_without_process(self.me.host)
            in_flight_file.sweep()
        return True

    def _note_myself(self) -> None:
        """Only in this thread: another one's heartbeat could overwrite the end."""
        if self._ending:
            self.recorder.note(self.me, role="supervisor", state=Process.State.STOPPED, ended_at=Now())
        else:
            facts = {"state": Process.State.RUNNING, "heartbeat_at": Now(), **process_stats.facts()}
            self.recorder.note(self.me, role="supervisor", **facts)

    def _scan(self) -> None:
        roles = desired.roles(self.me.host)
        if self._leader_lock.take():
            roles += [role for role in singletons() if role.key.kind not in self._without]
            roles += [trial()] if TrialItem.objects.to_try().exists() else []
            roles += [outbox_keeper()] if foreign_outbox.kept().exists() else []
        with self._guard:
            self._start_now |= desired.start_now(self.me.host)
        forget_old()
        self._roles, self._scanned = roles, time.monotonic()
        self.wake_supervisor.set()
