"""``manage.py up``: the whole product as one process tree, healed while it runs, ended in the right order."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from django.conf import settings

from pgqueue_admin.embedded import ports
from pgqueue_admin.embedded.errors import ServerFailed
from pgqueue_admin.embedded.lock import only_one
from pgqueue_admin.osproc import child_process
from pgqueue_admin.osproc.private_dirs import close
from pgqueue_admin.workers.processes.wakeup_pipe import WakeupPipe
from pgqueue_admin.workers.reporting.run_directory import folder, plain_log
from pgqueue_admin.workers.supervisor.embedded_servers import EmbeddedServers
from pgqueue_admin.workers.supervisor.programs import SupervisedProgram, environment, manage, programs

TICK = 0.5


class Up:
    def __init__(self, say: Callable[[str], None]):
        self._say = say
        self._began = time.monotonic()
        self._var = Path(settings.PGQUEUE["VAR"])
        self._waker = WakeupPipe()
        self._asked = 0  # number of requests to stop
        self._kept = [SupervisedProgram(program) for program in programs()]

    def run(self) -> None:
        _close_to_others(self._var)
        with only_one(self._var):
            _refuse_busy_port(*settings.PGQUEUE["LISTEN"])
            self._hear_signals()
            self._servers = EmbeddedServers(self._var)
            try:
                self._start()
                self._keep()
            finally:
                self._stop()

    def _start(self) -> None:
        for step in (self._start_servers, self._prepare, self._start_programs, self._tell):
            if not self._asked:
                step()

    def _start_servers(self) -> None:
        if server := self._servers.start_postgresql():
            self._tell_step(f"PostgreSQL on 127.0.0.1:{server.port}, kept in {server.home}")
        if self._servers.outside:
            self._tell_step("That is outside this folder, which its account cannot enter; `make clean` removes it")
        if broker := self._servers.start_valkey():
            self._tell_step(f"Valkey on 127.0.0.1:{broker.port}")
        self._servers.write_state()

    def _prepare(self) -> None:
        # --clear: a killed start may have left half a file, which is newer than the whole one and so would be kept
        collect = manage("collectstatic", "--noinput", "--clear")
        static = child_process.spawn(collect, log=plain_log("collectstatic"), env=environment())
        self._wait_for(child_process.spawn(manage("prepare"), env=environment()), "Nothing was started.")
        self._wait_for(static, f"Static files were not collected: see {plain_log('collectstatic')}.")
        self._servers.checkpoint()

    def _start_programs(self) -> None:
        for kept in self._kept:
            kept.start()
        host, port = settings.PGQUEUE["LISTEN"]
        self._tell_step("Started " + ", ".join(kept.program.name for kept in self._kept))
        while not ports.answers(port, host) and not self._asked:
            self._look()
            self._waker.wait(0.05)

    def _tell(self) -> None:
        self._tell_step(f"Console: {settings.PGQUEUE['PUBLIC_URL']}/   logs: {folder('log')}   stop: Ctrl-C")

    def _keep(self) -> None:
        while not self._asked:
            self._look()
            self._waker.wait(TICK)

    def _look(self) -> None:
        for sentence in [self._servers.look(), *(kept.look() for kept in self._kept)]:
            if sentence:
                self._tell_step(sentence)

    def _stop(self) -> None:
        """Ask all programs at once; stop the servers last: workers drain while their database runs."""
        running = [kept for kept in self._kept if kept.running]
        if running:
            self._tell_step("Stopping: workers finish what they have in flight. Ctrl-C again: at once")
        for kept in running:
            kept.ask_to_end()
        self._drain(running)
        self._servers.stop()
        self._tell_step("Stopped")

    def _drain(self, running: list[SupervisedProgram]) -> None:
        """Each has its own time to end: a hung one does not delay the others."""
        began = time.monotonic()
        while (left := [kept for kept in running if kept.running]) and self._asked < 2:
            for kept in left:
                if time.monotonic() - began >= kept.program.drain_seconds:
                    kept.end(0)
            self._waker.wait(0.1)
        for kept in running:
            kept.end(0)

    def _wait_for(self, process: "subprocess.Popen[bytes]", otherwise: str) -> None:
        while process.poll() is None and not self._asked:
            self._waker.wait(0.05)
        if self._asked:
            child_process.kill_session(process)
        elif process.returncode:
            raise ServerFailed(otherwise)

    def _tell_step(self, sentence: str) -> None:
        self._say(f"{time.monotonic() - self._began:6.1f} s  {sentence}")

    def _hear_signals(self) -> None:
        signal.set_wakeup_fd(self._waker.write_fd, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # its byte on the pipe wakes us: an ended child is seen at once

    def _ask_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._asked += 1


def _close_to_others(var: Path) -> None:
    """Skips a history folder shared with other accounts, such as a cluster's workers: it has the modes they need."""
    history, master = settings.PGQUEUE["HISTORY_DIR"], settings.PGQUEUE["SPARK_MASTER"]
    for name in ("log", "mail", "run"):
        folder(name)
    is_ours = history.is_relative_to(var) and (not master or master.startswith("local"))
    close(var, but=() if is_ours else {history})
    if is_ours:
        os.umask(0o077)


def _refuse_busy_port(host: str, port: int) -> None:
    if ports.is_busy(port, host):
        raise ServerFailed(f"Port {port} on {host} is taken: stop what listens there, or take another: make run PORT=…")
