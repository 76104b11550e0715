"""A process that kills itself, and the servers' own sessions for it, which end a moment later."""

import json
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from pgqueue_admin.dialects import dialect_for
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
_OTHERS = "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
_OTHERS_OF_MSSQL = (
    "select session_id as pid from sys.dm_exec_sessions where database_id = db_id() and session_id <> @@spid"
)


def run_killed(script: str, arguments: Collection[str], environment: Mapping[str, str], *dsns: str) -> None:
    """Until its sessions in these databases are gone: with them goes what they had locked, or had not committed.

    A server hears that a process is dead when it has a processor to listen with; the dead one's parent hears it first.
    """
    before = {dsn: _sessions(dsn) for dsn in dsns}
    assert _ended(script, arguments, environment) == -signal.SIGKILL
    for dsn in dsns:
        until(lambda dsn=dsn: _sessions(dsn) <= before[dsn], what="its sessions have ended")  # type: ignore[misc]


def _ended(script: str, arguments: Collection[str], environment: Mapping[str, str]) -> int:
    """Run as ``python -c script`` would, in a fork of a process that has imported what reads no environment."""
    parent = _forking()
    assert parent.stdin
    assert parent.stdout
    parent.stdin.write(json.dumps([script, [*arguments], {**environment}]) + "\n")
    parent.stdin.flush()
    return int(parent.stdout.readline())


@cache
def _forking() -> "subprocess.Popen[str]":
    """One for all tests of a process; it ends when that does, whose end of the pipe closes."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", "tests.forking"], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def _sessions(dsn: str) -> set[int]:
    with dialect_for(dsn).connect(dsn) as session:
        return {row.pid for row in session.all(_OTHERS_OF_MSSQL if dsn.startswith("mssql") else _OTHERS)}
