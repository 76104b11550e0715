"""The processes of one role on this host: as many as desired, restarted with backoff."""

import logging
import time
from datetime import UTC, datetime, timedelta

from pgqueue_admin.archive.messages import clean
from pgqueue_admin.models import InFlightAtCrash, Process
from pgqueue_admin.workers.supervisor.backoff import Backoff
from pgqueue_admin.workers.supervisor.managed_process import ManagedProcess
from pgqueue_admin.workers.supervisor.process_recorder import ProcessRecorder
from pgqueue_admin.workers.supervisor.role import Role

log = logging.getLogger(__name__)
State = Process.State


class ProcessGroup:
    def __init__(self, role: Role, recorder: ProcessRecorder):
        self.role, self._recorder = role, recorder
        self.processes: list[ManagedProcess] = []
        self.backoff = Backoff(time.monotonic)
        self._crashed: list[ManagedProcess] = []
        self.next_start_at: datetime | None = None

    def reap(self) -> None:
        for process in list(self.processes):
            process.kill_if_due()
            self._weigh(process)
            if self.role.hung_after:
                process.kill_if_hung(self.role.hung_after)
            if (code := process.exit_code()) is not None:
                self.processes.remove(process)
                self._ended(process, code)

    def reconcile(self, want: int) -> None:
        self._replace_one()
        staying = [process for process in self.processes if not process.draining]
        for process in staying[want:]:
            self._drain(process)
        if len(staying) >= want:
            self._miss_nobody()
        elif not self.backoff.waiting:
            self._forget_crashes()
            for _ in range(want - len(staying)):
                self._try_to_start()

    def start_now(self) -> None:
        self.backoff.start_now()

    def _try_to_start(self) -> None:
        """A failed fork or a full disk must not end the supervisor, and all other processes with it."""
        try:
            if not self.backoff.waiting:
                self._start()
        except OSError as error:
            wait = self.backoff.crashed(0.0)
            log.warning("%s cannot be started: %s. Next try in %.1f s.", self.role.label, error, wait)

    def _start(self) -> None:
        process = ManagedProcess(self.role, self._free_ordinal())
        self.processes.append(process)
        log.info("Started %s, pid %s.", self.role.label, process.identity.pid)
        kind, endpoint = self.role.key
        facts = {"role": kind, "endpoint": endpoint, "started_at": process.started_at, "log": str(process.log)}
        self._recorder.note(process.identity, started_version=self.role.version, **facts)

    def _replace_one(self) -> None:
        """In a rolling restart, drain the process whose turn it is; a new one replaces it."""
        for process in self.processes:
            if process.identity == self.role.replace and not process.draining:
                self._drain(process)

    def _weigh(self, process: ManagedProcess) -> None:
        """Above the first limit it drains and is replaced; above the second it is killed at once."""
        size, ceiling = process.memory_bytes, self.role.ceiling
        if limit := ceiling.broken_kill(size):
            process.too_large = limit
            process.kill()
        elif not process.draining and (limit := ceiling.broken_drain(size)):
            process.too_large = limit
            log.warning("%s, pid %s, drains at %s.", self.role.label, process.identity.pid, limit)
            self.backoff.crashed(process.ran)  # else one that starts above its limit would restart without a pause
            self._drain(process)

    def _drain(self, process: ManagedProcess) -> None:
        process.drain(self.role.drain_seconds)
        until = datetime.now(UTC) + timedelta(seconds=self.role.drain_seconds)
        self._recorder.note(process.identity, state=State.DRAINING, drain_until=until)

    def _ended(self, process: ManagedProcess, code: int) -> None:
        facts = {"ended_at": datetime.now(UTC), "exit_code": code, "busy": 0}
        if process.draining and (code >= 0 or not process.too_large):
            self._recorder.note(process.identity, state=State.STOPPED, **facts, **self._parting(process, code))
            return
        self._recorder.hold(held_at_death(process, code))
        # a drain for memory counted as a crash at its beginning; the successor has started since
        wait = self.backoff.left if process.draining else self.backoff.crashed(process.ran)
        self.next_start_at = datetime.now(UTC) + timedelta(seconds=wait)
        why = process.last_words()
        told = "%s, pid %s, %s. Next start in %.1f s. Its last line: %s"
        log.warning(told, self.role.label, process.identity.pid, why, wait, process.last_line())
        self._crashed.append(process)
        facts |= {**_said(why, process.last_line()), "next_start_at": self.next_start_at}
        self._recorder.note(process.identity, state=State.BACK_OFF, **facts)

    def _parting(self, process: ManagedProcess, code: int) -> dict[str, object]:
        """Facts of a process that was asked to end; records what it had in flight if it died on the way."""
        if process.left_as_asked:
            return _said(process.how) if process.too_large else {}
        self._recorder.hold(held_at_death(process, code))
        why = process.last_words()
        told = "%s, pid %s, while it drained: %s. Its last line: %s"
        log.warning(told, self.role.label, process.identity.pid, why, process.last_line())
        return _said(why, process.last_line())

    def _forget_crashes(self) -> None:
        for process in self._crashed:
            self._recorder.note(process.identity, state=State.CRASHED, next_start_at=None)
        self._crashed.clear()
        self.next_start_at = None

    def _miss_nobody(self) -> None:
        """No process is missing: end the backoff, so that a later start does not wait."""
        if self._crashed:
            self.backoff.start_now()
            self._forget_crashes()

    def _free_ordinal(self) -> int:
        taken = {process.ordinal for process in self.processes}
        return next(number for number in range(1, len(taken) + 2) if number not in taken)


def _said(why: str, last_line: str = "") -> dict[str, object]:
    return {"last_error": why, "last_line": last_line, "last_error_at": datetime.now(UTC)}


# Records of a process that ended unasked: each message it had in flight, and how it ended.
def held_at_death(process: ManagedProcess, code: int) -> list[InFlightAtCrash]:
    """One row per message. Several at once are all suspects: ``others_in_flight`` counts the others."""
    died = {"died_at": datetime.now(UTC), "exit_code": code, "how": process.how[:200]}
    who = {"endpoint": process.role.key.endpoint, "others_in_flight": max(0, len(process.held) - 1)}
    return [
        InFlightAtCrash(
            **died,
            **who,
            **process.identity._asdict(),
            schema=held.schema,
            table=held.table,
            row_id=held.row_id,
            seq=held.seq,
            message_id=clean(held.message_id) or "",
            message_type=clean(held.type) or "",
            received_at=held.since,
        )
        for held in process.held
    ]
