"""The programs that ``manage.py up`` keeps running beside the servers, each with its own command line."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from pgqueue_admin.models.endpoint_validation import LONGEST_DRAIN_SECONDS
from pgqueue_admin.osproc import child_process
from pgqueue_admin.workers.reporting import liveness_file, process_identity
from pgqueue_admin.workers.reporting.process_stats import LOG
from pgqueue_admin.workers.reporting.run_directory import plain_log
from pgqueue_admin.workers.supervisor import managed_process
from pgqueue_admin.workers.supervisor.backoff import Backoff
from pgqueue_admin.workers.supervisor.managed_process import ENGINE_SETTINGS

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_DRAIN = LONGEST_DRAIN_SECONDS + 10.0  # seconds: the supervisor applies each endpoint's own limit
_CELERY = (sys.executable, "-m", "celery", "-A", "pgqueue_admin.config.celery")


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    drain_seconds: float
    env: dict[str, str] = field(default_factory=dict)
    beats: bool = False  # it beats, and is killed if it stops

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(), **self.env}


def environment() -> dict[str, str]:
    """Our environment, with the package importable from any folder."""
    paths = [str(_PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "django", *words)


def programs() -> list[Program]:
    return [_web(), _supervisor(), _celery_worker(), _celery_beat()]


def _web() -> Program:
    host, port = settings.PGQUEUE["LISTEN"]
    # without a graceful timeout, one open stream keeps uvicorn for ever; Django handles no lifespan messages
    options = ("--host", host, "--port", str(port), "--timeout-graceful-shutdown", "2", "--lifespan", "off")
    argv = (sys.executable, "-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--no-access-log", *options)
    return Program("web", argv, 5, {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"})


def _supervisor() -> Program:
    # base settings take a fifth less memory: it shows no page and runs no task. Children that need all name their
    # settings
    return Program("supervisor", manage("supervise"), _DRAIN, {"DJANGO_SETTINGS_MODULE": ENGINE_SETTINGS})


def _celery_worker() -> Program:
    # threads: one process, so that a kill leaves none behind; a single worker needs no gossip
    pool = ("--pool", "threads", "--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat")
    return Program("celery-worker", (*_CELERY, "worker", "--loglevel", "INFO", *pool), 15, beats=True)


def _celery_beat() -> Program:
    return Program("celery-beat", (*_CELERY, "beat", "--loglevel", "INFO", "--pidfile="), 5, beats=True)


# A program that is restarted when it ends unasked.
LONGEST = 5.0  # seconds: there are few programs, and nothing works without them


class SupervisedProgram:
    def __init__(self, program: Program):
        self.program = program
        self._backoff = Backoff(time.monotonic, longest=LONGEST)
        self._child: subprocess.Popen[bytes] | None = None
        self._since = self._told_wait = 0.0
        self._hung, self._silence = "", liveness_file.ProcessSilence()

    def start(self) -> None:
        name, argv = self.program.name, self.program.argv
        self._since = time.monotonic()
        self._hung, self._silence = "", liveness_file.ProcessSilence()
        log = plain_log(name)
        self._child = child_process.spawn(argv, log=log, env={**self.program.environment, LOG: str(log)})

    def look(self) -> str | None:
        """Detect an unasked end, and restart when due; return a sentence to print, if any.

        A hung program is killed, and reported as ended at the next look.
        """
        self._end_if_hung()
        if self._child and self._child.poll() is not None:
            return self._ended(self._child.returncode)
        return None if self._child or self._backoff.waiting else self._start_again()

    def ask_to_end(self) -> None:
        if self.running and self._child:
            self._child.terminate()

    def end(self, seconds: float) -> None:
        """Wait until it has ended as asked; kill it after ``seconds``."""
        if self._child:
            child_process.end(self._child, (signal.SIGTERM, seconds))

    def _end_if_hung(self) -> None:
        after = settings.PGQUEUE["LIVENESS_TIMEOUT_SECONDS"]
        if not (after and self.program.beats and self.running and self._child):
            return
        if hung := self._silence.broken(process_identity.of(self._child.pid), after):
            self._hung = f"{hung}, "
            child_process.kill_session(self._child)

    @property
    def pid(self) -> int:
        return self._child.pid if self._child else 0

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def _start_again(self) -> str | None:
        """A failed fork or a full disk must not end this process, and all programs with it."""
        try:
            self.start()
        except OSError as error:
            return self._waits(f"{self.program.name} cannot be started: {error}", ran=0.0)
        return None

    def _ended(self, code: int) -> str | None:
        self._child = None
        how = f"killed by {managed_process.signal_name(-code)}" if code < 0 else f"exit {code}"
        return self._waits(f"{self.program.name} ended ({self._hung}{how})", time.monotonic() - self._since)

    def _waits(self, what: str, ran: float) -> str | None:
        wait = self._backoff.crashed(ran)
        if wait == self._told_wait == LONGEST:
            return None  # it keeps ending, and that was printed
        self._told_wait = wait
        again = f"started again in {wait:.1f} s{', and so on' if wait == LONGEST else ''}"
        return f"{what}; {again}, see {plain_log(self.program.name)}"
