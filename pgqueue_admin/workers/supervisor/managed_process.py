"""One managed process: start, drain, kill."""

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
    """``SIGKILL``, or ``signal 36`` for those without a name in Python: nearly all real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


ENGINE_SETTINGS = "pgqueue_admin.config.base_settings"
KNOWN_SETTINGS = "PGQUEUE_ENDPOINT"
_MOST_NAMED = 3
GRACE = 2.0  # a child that drained in time still has to report and exit
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class ManagedProcess:
    """Use from the main thread only: the kernel's parent-death signal is bound to the thread that started the child."""

    def __init__(self, role: Role, ordinal: int):
        self.role, self.ordinal = role, ordinal
        self.log = run_directory.log_file(role.label, ordinal)
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self.started, self.started_at = time.monotonic(), datetime.now(UTC)
        self.kill_at: float | None = None
        self.held: list[in_flight_file.InFlightEntry] = []  # messages in flight when it ended
        self.too_large = ""  # why it was drained or killed for its memory
        self.hung = ""  # why it was killed while alive
        self._overdue = False  # its drain time ran out
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
        """Ask it to end; ``kill_if_due`` kills it after ``seconds`` and a grace."""
        self.kill_at = time.monotonic() + seconds + GRACE
        if self._popen.returncode is None:  # send_signal would reap it, and its messages in flight would not be read
            os.kill(self._popen.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill at once, with all that it started."""
        self._kill_group()

    def kill_if_due(self) -> None:
        if self.kill_at is not None and time.monotonic() > self.kill_at:
            self._overdue = True
            self._kill_group()

    def kill_if_hung(self, after: float) -> None:
        """Kill it after so many seconds without a sign of life. A draining process has a deadline already."""
        hung = self._silence.broken(self.identity, after)
        if hung and not self.draining:
            self.hung = hung
            self._kill_group()

    def exit_code(self) -> int | None:
        """None while it runs. Kills its group before reaping it: until then no other group can get its number."""
        if self._popen.returncode is None and _has_ended(self._popen.pid):
            self._kill_group()
            self._popen.wait()
            self._overdue |= self._time_is_over
            self.held = in_flight_file.take_away(self.identity)
            liveness_file.forget(self.identity)
        return self._popen.returncode

    @property
    def _time_is_over(self) -> bool:
        """The child knows its deadline, too: it leaves what is in flight and exits well before it would be killed."""
        return self.kill_at is not None and time.monotonic() >= self.kill_at - GRACE

    @property
    def left_as_asked(self) -> bool:
        """Whether it drained, or its drain time ran out. Anything else that ended it may end the next one, too."""
        drained = self._popen.returncode in (0, -signal.SIGTERM) and not self.held
        return self.draining and (self._overdue or drained)

    def last_words(self) -> str:
        """Why it ended, for operators. Nothing of its log, which only some may read."""
        return "; ".join([self.how, *(f"in flight: {held.type} {held.message_id}" for held in self.held[:_MOST_NAMED])])

    def last_line(self) -> str:
        return run_directory.last_line(self.log, self._log_start)

    @property
    def how(self) -> str:
        """How it ended: by which signal, with which exit code, or at which memory."""
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
    }  # only the supervisor notifies systemd
    return {
        **ours,
        "DJANGO_SETTINGS_MODULE": role.settings_module or ENGINE_SETTINGS,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        PARENT: str(os.getpid()),
        KNOWN_SETTINGS: role.known_settings,
    }
