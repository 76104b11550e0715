"""``make test-sqlserver``: its message if no server answers, and that its suites use a server if there is one."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scripts import sqlserver as command
from scripts.sqlserver import SUITES, VARIABLE, Found
from tests.dialects.sqlserver.peer import Peer

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def mute() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with closing(Peer(mute=True)) as peer:
        yield f"mssql://sa:secret@127.0.0.1:{peer.port}/master"


def run(dsn: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, VARIABLE: dsn}
    asked = [sys.executable, "scripts/sqlserver.py"]
    return subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_without_a_server_it_says_so_in_one_sentence() -> None:
    said = run("")
    assert (said.returncode, said.stdout.count("\n")) == (2, 1)
    assert said.stdout.startswith(f"No SQL Server was asked: {VARIABLE}=mssql://")


def test_a_server_that_does_not_answer_is_not_asked_more(mute: str) -> None:
    said = run(mute)
    assert (said.returncode, said.stdout.count("\n")) == (2, 1)
    assert said.stdout.startswith("No SQL Server was asked: ")
    assert "secret" not in said.stdout


def test_each_suite_asks_a_server_that_is_named() -> None:
    paths = [path for suite in SUITES for path in suite.paths]
    listed = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-k", "mssql", "--collect-only", *paths]
    environment = {**os.environ, VARIABLE: "mssql://sa@127.0.0.1:1/master"}
    said = subprocess.run(listed, cwd=ROOT, env=environment, capture_output=True, text=True)
    found = [line for line in said.stdout.splitlines() if "mssql" in line]
    assert {path: sum(line.startswith(f"{path}::") for line in found) >= 3 for path in paths} == dict.fromkeys(
        paths, True
    )


def test_suite_over_its_time_limit_is_ended() -> None:
    began = time.monotonic()
    waits = [sys.executable, "-c", "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); input()"]
    read, write = os.pipe()  # nothing writes to it
    before = os.dup(0)
    try:
        os.dup2(read, 0)
        assert command._ended(waits, 0.5) is False
    finally:
        os.dup2(before, 0)
        for each in (read, write, before):
            os.close(each)
    assert time.monotonic() - began < 15


def test_suites_run_in_parallel_and_the_last_line_sums_them_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each waits until the other has opened the same pipe; run in turn, they would block for ever."""
    monkeypatch.setenv(VARIABLE, "mssql://sa@127.0.0.1:1/master")
    monkeypatch.setattr(command, "_trouble", lambda: "")
    pipe, suites = tmp_path / "pipe", []
    os.mkfifo(pipe)
    for name, end in (("one", "r"), ("two", "w")):
        test = tmp_path / f"test_{name}.py"
        test.write_text(f"def test_mssql():\n    open({str(pipe)!r}, {end!r}).close()\n")
        suites.append(command.Suite(name, "something", (str(test),)))
    assert command.main(suites, 60) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[-1].startswith("All of it holds there. ")
    assert said.count("1 passed") == 2


def test_the_table_says_what_holds() -> None:
    first, second, third = SUITES[:3]
    found = [
        Found(first, 40, (), 30.0),
        Found(second, 3, ("tests/x.py::test_y[mssql]",), 20.0),
        Found(third, 0, (), 0.0, "not reached in time"),
    ]
    said = command.table(found, 51.0)
    assert said.endswith("1 of 3 suites hold there. 51 s of 300 s.")
    for words in ("holds  ", "DOES NOT HOLD", "not reached in time", "failed: tests/x.py::test_y[mssql]"):
        assert words in said
    assert command.table([Found(first, 1, (), 1.0)], 1.0).endswith("All of it holds there. 1 s of 300 s.")
    assert not Found(first, 0, (), 1.0).holds, "no test that was run says nothing"
