"""The memory of a real child of the supervisor, ``manage.py worker``, while it handles many messages."""

import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.engine_queues import Queues
from bench.table import Row, row
from pgqueue_admin.workers.supervisor.managed_process import ENGINE_SETTINGS

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = 1_000_000 if os.environ.get("LONG") else 3 * int(os.environ.get("MESSAGES", 20_000))


def memory(queues: Queues) -> list[Row]:
    """Measured after a fifth of the messages and after all of them: the difference is growth."""
    with tempfile.TemporaryDirectory(prefix="pgqueue-bench-") as folder:
        environment = {
            **os.environ,
            "DATABASE_URL": queues.dsn,
            "PGQUEUE_HANDLER_APPS": "bench",
            "PGQUEUE_STATE_DIR": folder,
        }
        environment["SECRET_KEY"] = secrets.token_hex(32)
        for words in (["migrate", "-v0"], ["engine_schema", "-v0"], ["endpoint", "Engine"]):
            manage(*words, environment=environment).wait()
        queues.empty()
        queues.fill("Engine", MESSAGES)
        child = started_as_by_the_supervisor(environment)
        try:
            early = megabytes_when(queues, child.pid, MESSAGES * 4 // 5)
            late = megabytes_when(queues, child.pid, 0)
        finally:
            child.terminate()
            child.wait()
    return [
        row(f"memory of a worker child after {MESSAGES:,} messages", late, "MB", floor=None, target=80),
        row("what it grew by over the last four fifths of them", late - early, "MB", floor=None, target=3),
    ]


def manage(*words: str, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "manage.py", *words], cwd=ROOT, env=environment, stdout=sys.stderr)


def started_as_by_the_supervisor(environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    """With its settings: without Celery's apps, admin and pages, which ``manage.py worker`` by hand loads."""
    command = [sys.executable, "-m", "pgqueue_admin.workers.processes.child_bootstrap", "worker", "Engine"]
    environment = {**environment, "DJANGO_SETTINGS_MODULE": ENGINE_SETTINGS}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sys.stderr)


def megabytes_when(queues: Queues, pid: int, left: int) -> float:
    """Resident memory when at most ``left`` messages wait."""
    deadline = time.monotonic() + 3600
    while queues.connection.value('select count(*) from "Engine"') > left:
        if time.monotonic() > deadline:
            raise SystemExit("The worker child did not handle its messages within an hour.")
        time.sleep(0.5)
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
