"""One managed process: start, ask to end, kill."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pgqueue_admin.workers.processes.child_bootstrap import PARENT
from pgqueue_admin.workers.reporting import (
    in_flight_file,
    liveness_file,
    process_identity,
    process_stats,
    run_directory,
)
from pgqueue_admin.workers.supervisor import systemd_notify
from pgqueue_admin.workers.supervisor.role import Role


def signal_name(number: int) -> str:
    """``SIGKILL``, and ``signal 36`` of those for which Python has no name: nearly all real-time ones."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


ENGINE_SETTINGS = "pgqueue_admin.config.base_settings"
KNOWN_SETTINGS = "PGQUEUE_ENDPOINT"
_MOST_NAMED = 3
GRACE = 2.0  # a child that drains in time still has to say so and leave
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class ManagedProcess:
    """Call it from the main thread only: the kernel's parent-death signal is bound to the thread that started it."""

    def __init__(self, role: Role, ordinal: int):
        self.role, self.ordinal = role, ordinal
        self.log = run_directory.log_file(role.label, ordinal)
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self.started, self.started_at = time.monotonic(), datetime.now(UTC)
        self.kill_at: float | None = None
        self.held: list[in_flight_file.InFlightEntry] = []  # what it had in flight when it ended
        self.too_large = ""  # why it was drained or killed for its memory
        self.hung = ""  # why it was killed though it had not ended
        self._overdue = False  # its time to drain was over
        self._silence = liveness_file.ProcessSilence()
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "pgqueue_admin.workers.processes.child_bootstrap", *role.command],
                env={**environment(role), process_stats.LOG: str(self.log)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.identity = process_identity.of(self._popen.pid)

    @property
    def draining(self) -> bool:
        return self.kill_at is not None

    @property
    def ran(self) -> float:
        return time.monotonic() - self.started

    @property
    def memory_bytes(self) -> int:
        return process_stats.memory_bytes(self.identity.pid)

    def drain(self, seconds: float) -> None:
        """It is told to end; ``kill_if_due`` kills it when ``seconds`` and a grace are over."""
        self.kill_at = time.monotonic() + seconds + GRACE
        if self._popen.returncode is None:  # send_signal would reap, and nobody take away what was in flight
            os.kill(self._popen.pid, signal.SIGTERM)

    def kill(self) -> None:
        """At once, with all that it started."""
        self._kill_group()

    def kill_if_due(self) -> None:
        if self.kill_at is not None and time.monotonic() > self.kill_at:
            self._overdue = True
            self._kill_group()

    def kill_if_hung(self, after: float) -> None:
        """Where it has shown no sign of life for so many seconds; one that drains has a deadline already."""
        hung = self._silence.broken(self.identity, after)
        if hung and not self.draining:
            self.hung = hung
            self._kill_group()

    def exit_code(self) -> int | None:
        """None while it runs. While the dead leader is not yet reaped no other group can have its number."""
        if self._popen.returncode is None and _has_ended(self._popen.pid):
            self._kill_group()
            self._popen.wait()
            self._overdue |= self._time_is_over
            self.held = in_flight_file.take_away(self.identity)
            liveness_file.forget(self.identity)
        return self._popen.returncode

    @property
    def _time_is_over(self) -> bool:
        """It knows its deadline too: then it leaves what it has in flight, well before anybody has to kill it."""
        return self.kill_at is not None and time.monotonic() >= self.kill_at - GRACE

    @property
    def left_as_asked(self) -> bool:
        """It drained, or ran out of the time for it. Whatever else ended it may do so again to the next one."""
        drained = self._popen.returncode in (0, -signal.SIGTERM) and not self.held
        return self.draining and (self._overdue or drained)

    def last_words(self) -> str:
        """Why it ended, as an operator wants to read it. Nothing of its log: that only some may read."""
        return "; ".join([self.how, *(f"in flight: {held.type} {held.message_id}" for held in self.held[:_MOST_NAMED])])

    def last_line(self) -> str:
        return run_directory.last_line(self.log, self._log_start)

    @property
    def how(self) -> str:
        """By which signal, with which exit code, or for which memory it ended."""
        code = self._popen.returncode or 0
        if self.hung:
            return f"killed: {self.hung}"
        if self.too_large:
            return f"{'killed' if code < 0 else 'drained'} at {self.too_large}"
        return f"ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def environment(role: Role) -> dict[str, str]:
    paths = [str(_PACKAGE_ROOT), *filter(None, [sys.path[0], os.environ.get("PYTHONPATH")])]
    ours = {
        name: value for name, value in os.environ.items() if name != systemd_notify.SOCKET
    }  # the supervisor speaks for all
    return {
        **ours,
        "DJANGO_SETTINGS_MODULE": role.settings_module or ENGINE_SETTINGS,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        PARENT: str(os.getpid()),
        KNOWN_SETTINGS: role.known_settings,
    }
