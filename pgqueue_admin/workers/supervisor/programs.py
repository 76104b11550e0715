"""The programs that ``manage.py up`` keeps running beside the servers: each a command line of its own."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from pgqueue_admin.models.endpoint_validation import LONGEST_DRAIN_SECONDS
from pgqueue_admin.workers.supervisor.managed_process import WORKER_SETTINGS

_PACKAGE_ROOT = Path(__file__).resolve().parents[2]
_DRAIN = LONGEST_DRAIN_SECONDS + 10.0  # the supervisor knows each endpoint's own, and keeps to it
_CELERY = (sys.executable, "-m", "celery", "-A", "pgqueue_admin.config.celery")


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    drain_seconds: float
    env: dict[str, str] = field(default_factory=dict)
    beats: bool = False  # it shows signs of life, and is killed where it shows none

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(), **self.env}


def environment() -> dict[str, str]:
    """Ours, with the package importable from any folder."""
    paths = [str(_PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}


def manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "django", *words)


def programs() -> list[Program]:
    return [_web(), _supervisor(), _celery_worker(), _celery_beat()]


def _web() -> Program:
    host, port = settings.PGQUEUE["LISTEN"]
    # without a graceful timeout one open stream keeps uvicorn for ever; Django takes no lifespan messages
    options = ("--host", host, "--port", str(port), "--timeout-graceful-shutdown", "2", "--lifespan", "off")
    argv = (sys.executable, "-m", "uvicorn", "pgqueue_admin.config.asgi:application", "--no-access-log", *options)
    return Program("web", argv, 5, {"DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.web_settings"})


def _supervisor() -> Program:
    # it shows no page and runs no task: a fifth less memory, and the children that need all of it name their settings
    return Program("supervisor", manage("supervise"), _DRAIN, {"DJANGO_SETTINGS_MODULE": WORKER_SETTINGS})


def _celery_worker() -> Program:
    # threads: one process, so that none is left over when it is killed; one worker needs no gossip
    pool = ("--pool", "threads", "--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat")
    return Program("celery-worker", (*_CELERY, "worker", "--loglevel", "INFO", *pool), 15, beats=True)


def _celery_beat() -> Program:
    return Program("celery-beat", (*_CELERY, "beat", "--loglevel", "INFO", "--pidfile="), 5, beats=True)
