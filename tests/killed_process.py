"""A process that kills itself, and the servers' own sessions for it, which end a moment later."""

import signal
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from pgqueue_admin.dialects import dialect_for
from tests.fork_server import ForkServer
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = (
    *("celery.app.base", "celery.result", "environ", "kombu", "psycopg"),
    *("django.core.management", "django.db.models", "django.forms", "django.template.defaulttags", "django.urls"),
    *("pgqueue_admin.archive.ingester", "pgqueue_admin.lease", "pgqueue_admin.transport.endpoint"),
)
_OTHERS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
_OTHERS_OF_MSSQL = (
    "select session_id as pid from sys.dm_exec_sessions where database_id = db_id() and session_id <> @@spid"
)


def run_killed(script: str, arguments: Collection[str], environment: Mapping[str, str], *dsns: str) -> None:
    """Until its sessions in these databases are gone: with them goes what they had locked, or had not committed.

    A server hears that a process is dead when it has a processor to listen with; the dead one's parent hears it first.
    """
    before = {dsn: _sessions(dsn) for dsn in dsns}
    died = _fork_server().run([sys.executable, "-c", script, *arguments], env=environment)
    assert died.returncode == -signal.SIGKILL, died.stderr
    for dsn in dsns:
        until(lambda dsn=dsn: _sessions(dsn) <= before[dsn], what="its sessions have ended")  # type: ignore[misc]


@cache
def _fork_server() -> ForkServer:
    """One for all tests of a process."""
    return ForkServer(*IMPORTS)


def _sessions(dsn: str) -> set[int]:
    with dialect_for(dsn).connect(dsn) as session:
        return {row.pid for row in session.all(_OTHERS_OF_MSSQL if dsn.startswith("mssql") else _OTHERS)}
