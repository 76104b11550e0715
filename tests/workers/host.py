"""A host under test: its supervisor, its processes and what they leave behind."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pgqueue_admin.models import Endpoint, Process
from pgqueue_admin.workers.reporting.process_identity import start_ticks
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]


class House:
    """Real processes on ``console`` and ``queues``; every wait is for a condition."""

    def __init__(self, console: str, queues: str, var: Path, host: str = "house-1", apps: str = "tests.workers.shop"):
        self.host, self.var = host, var
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "pgqueue_admin.config.base_settings",
            "DATABASE_URL": console,
            "QUEUES_URL": queues,
            "PGQUEUE_HANDLER_APPS": apps,
            "PGQUEUE_STATE_DIR": str(var),
            "PGQUEUE_HOST": host,
            "SECRET_KEY": "of the tests",
        }
        self.supervisor: subprocess.Popen[str] | None = None

    def manage(self, *words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "manage.py", *words]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, start_new_session=True, **pipes)

    def supervise(self, *more: str, expirer: bool = False) -> "subprocess.Popen[str]":
        """Start a supervisor of endpoints only, unless options are given."""
        kinds = ["sampler", "alerter", "ingester", *([] if expirer else ["expirer"])]
        without = [word for kind in kinds for word in ("--without", kind)]
        self.supervisor = self.manage("supervise", *(more or without))
        return self.supervisor

    def rows(self, endpoint: str = "Sales", **wanted: Any) -> list[Process]:
        return list(Process.objects.filter(host=self.host, role="endpoint", endpoint=endpoint, **wanted).order_by("id"))

    def first(self, what: str, seconds: float = 20, endpoint: str = "Sales", **wanted: Any) -> Process:
        """Wait for the first process of this kind."""
        until(lambda: self.rows(endpoint, **wanted), seconds, what)
        return self.rows(endpoint, **wanted)[0]

    def running(self, count: int, endpoint: str = "Sales", state: str = "running") -> list[Process]:
        """Wait until exactly so many processes run."""

        def enough() -> list[Process] | None:
            rows = self.rows(endpoint, ended_at=None)
            return rows if len(rows) == count and all(row.state == state for row in rows) else None

        if count == 0:
            until(lambda: not self.rows(endpoint, ended_at=None), what="no process")
            return []
        return until(enough, what=f"{count} processes {state} of {endpoint}") or []

    def end(self) -> str:
        """Stop the supervisor and wait for it; return its output."""
        assert self.supervisor is not None
        self.supervisor.terminate()
        said, _ = self.supervisor.communicate(timeout=PATIENCE)
        assert self.supervisor.returncode == 0, said
        return said

    def close(self) -> None:
        """Stop the supervisor and all its processes."""
        if self.supervisor and self.supervisor.stdout and not self.supervisor.stdout.closed:
            self.supervisor.kill()
            self.supervisor.communicate()


def want(processes: int, name: str = "Sales", **settings: Any) -> Endpoint:
    facts = {"peek_delay_ms": 100, "concurrency": 2, "immediate_retries": 1, "delayed_retries": 0, **settings}
    return Endpoint.objects.create(name=name, table=name, desired_processes=processes, **facts)


def alive(pid: int) -> bool:
    """Whether the process runs; an ended one that is not reaped yet does not."""
    return start_ticks(pid) is not None
