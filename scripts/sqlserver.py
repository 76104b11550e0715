#!/usr/bin/env python3
"""Whether a SQL Server holds what the product asks of it: ``make test-sqlserver``, within five minutes.

    PGQUEUE_TEST_MSSQL_DSN='mssql://user:password@host/master' make test-sqlserver

These are PostgreSQL's tests, asked of that server, in a database that is made for them and dropped. Exit code: 0 where
all of it holds, 1 where not, 2 where no server was asked.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "PGQUEUE_TEST_MSSQL_DSN"
LIMIT = 300.0  # seconds, of all
AT_ONCE = 3  # suites, each in a database of its own
NOT_ASKED = f"No SQL Server was asked: {VARIABLE}=mssql://user:password@host/master names one, whose login may create"


_running = list["subprocess.Popen[bytes]"]()


class Suite(NamedTuple):
    """``says``: what holds where its tests pass. ``paths``: where these are."""

    name: str
    says: str
    paths: tuple[str, ...]


SUITES = [
    Suite("engine", "endpoints receive in three transaction modes, in batches, by both peeks",
          ("tests/dialects/test_endpoint_on_dialect.py",)),
    Suite("acts", "what waits or is delayed is acted on; what a retry sent is called back: each once",
          ("tests/services/test_acts_elsewhere.py",)),
    Suite("retry", "what is dead goes back by retry, edit or hand: each once, wherever that breaks",
          ("tests/services/test_crossings.py", "tests/services/test_crossings_by_hand.py")),
    Suite("conformance", "tables are made, checked and mended; send, receive, peek, purge, delay",
          ("tests/dialects/test_stores.py",)),
    Suite("outbox", "duplicates are known, both kinds of locking, clean-up", ("tests/dialects/test_outbox_store.py",)),
    Suite("crossings", "what became of a transaction is told afterwards", ("tests/dialects/test_crossing_store.py",)),
    Suite("ingestion", "error queues are emptied into the archive: each once, wherever that breaks",
          ("tests/workers/test_ingesting_another_database.py",)),
    Suite("console", "sampler, pages and warnings show what lies there, and change nothing",
          ("tests/console/test_each_kind_of_source.py", "tests/console/test_other_databases.py",
           "tests/alerts/test_table_faults.py")),
]  # fmt: skip


class Found(NamedTuple):
    """``why``: where not all of its tests were asked."""

    suite: Suite
    passed: int
    failed: tuple[str, ...]
    seconds: float
    why: str = ""

    @property
    def verdict(self) -> str:
        if self.failed:
            return "DOES NOT HOLD"
        return self.why or ("holds" if self.passed else "no test was run")

    @property
    def holds(self) -> bool:
        return self.verdict == "holds"


def main(suites: Sequence[Suite] = SUITES, limit: float = LIMIT) -> int:
    if not os.environ.get(VARIABLE):
        print(f"{NOT_ASKED} a database.")
        return 2
    if trouble := _trouble():
        print(f"No SQL Server was asked: {trouble}")
        return 2
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as several:
        try:
            found = list(several.map(lambda suite: _asked(suite, limit - (time.monotonic() - began)), suites))
        except KeyboardInterrupt:
            several.shutdown(wait=False, cancel_futures=True)
            for each in [*_running]:
                _signal(each, signal.SIGINT)
            raise
    print(table(found, time.monotonic() - began, limit))
    return 0 if all(each.holds for each in found) else 1


def _trouble() -> str:
    """Why the server cannot be asked, by one session."""
    asks = "import sys; from pgqueue_admin.dialects.sqlserver.dialect import sqlserver\n"
    asks += "from pgqueue_admin.dialects.errors import DatabaseError\n"
    asks += "try: sqlserver().connect(sys.argv[1], connect_timeout=10).close()\n"
    asks += "except (DatabaseError, ValueError) as error: sys.exit(f'{error}')"
    asked = subprocess.run(
        [sys.executable, "-c", asks, os.environ[VARIABLE]], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    return asked.stderr.strip() if asked.returncode else ""


def _asked(suite: Suite, seconds: float) -> Found:
    if seconds <= 0:
        return Found(suite, 0, (), 0.0, "not reached in time")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        junit, said = Path(folder) / "junit.xml", Path(folder) / "said"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-k", "mssql", f"--junitxml={junit}"]
        with said.open("wb") as output:
            ended = _ended([*command, *suite.paths], seconds, output)
        passed, failed = counted(junit)
        print(f"=== {suite.name}: {' '.join(suite.paths)}\n{said.read_text(errors='replace')}", flush=True)
    return Found(suite, passed, failed, time.monotonic() - began, "" if ended else "not ended in time")


def _ended(command: Sequence[str], seconds: float, output: IO[bytes] | None = None) -> bool:
    """Ctrl-C first, so that it drops its database."""
    both: dict[str, Any] = {"stdout": output, "stderr": subprocess.STDOUT} if output else {}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **both) as tests:
        _running.append(tests)
        for patience, name in ((seconds, signal.SIGINT), (20.0, signal.SIGKILL)):
            try:
                tests.wait(patience)
                return name is signal.SIGINT
            except subprocess.TimeoutExpired:
                _signal(tests, name)
    return False


def _signal(tests: subprocess.Popen[bytes], name: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(tests.pid, name)


def counted(junit: Path) -> tuple[int, tuple[str, ...]]:
    """How many passed, and which did not."""
    if not junit.exists():
        return 0, ()
    passed, failed = 0, dict[str, None]()
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped")):
            failed[f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"] = None
        else:
            passed += 1
    return passed, tuple(failed)


def table(found: Sequence[Found], seconds: float, limit: float = LIMIT) -> str:
    lines = ["", f"{'suite':12} {'passed':>6} {'failed':>6} {'seconds':>7}  {'verdict':19} what it is about"]
    for each in found:
        figures = f"{each.passed:6} {len(each.failed):6} {each.seconds:7.1f}"
        lines.append(f"{each.suite.name:12} {figures}  {each.verdict:19} {each.suite.says}")
    lines += [f"  failed: {name}" for each in found for name in each.failed]
    held = sum(each.holds for each in found)
    whole = "All of it holds there." if held == len(found) else f"{held} of {len(found)} suites hold there."
    return "\n".join([*lines, f"{whole} {seconds:.0f} s of {limit:.0f} s."])


if __name__ == "__main__":
    sys.exit(main())
