"""Process 1 of a container reaps orphans and forwards signals to its child."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import pytest

from pgqueue_admin.embedded import ports
from tests.waiting import until, within

ROOT = Path(__file__).resolve().parents[2]
_PR_SET_CHILD_SUBREAPER = 36
# a shell leaves an orphan, then becomes the process under test by exec
LEAVE_ONE = "(sleep 0.5 & echo $! > {file}); exec {command}"
MAY = os.geteuid() == 0 and shutil.which("unshare")
OWN_NAMESPACE = [["unshare", "--pid", "--fork", "--kill-child"]] if MAY else []

Start = Callable[[str], "First"]


class First:
    def __init__(self, started: "subprocess.Popen[str]", is_wrapped: bool, file: Path):
        self.started = started
        self._is_wrapped, self._file = is_wrapped, file

    @cached_property
    def pid(self) -> int:
        """The pid of the process that inherits orphans, as seen from here. It may have ended already."""
        return until(lambda: next(iter(children(self.started.pid)), 0)) if self._is_wrapped else self.started.pid

    def orphan_is_gone(self) -> bool:
        """From the kernel's list of its children: the orphan is neither running nor a zombie."""
        return self._file.exists() and not any(name(pid) == "sleep" for pid in children(self.pid))

    def workers(self) -> list[int]:
        return [pid for pid in children(self.pid) if name(pid) != "sleep"]


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _adopt() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


@pytest.fixture(params=[[], *OWN_NAMESPACE], ids=["a subreaper", "process 1"][: 1 + len(OWN_NAMESPACE)])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def start(command: str) -> First:
        file = tmp_path / "orphan"
        nowhere = f"postgresql://nobody@127.0.0.1:{ports.free()}/nothing"
        given = {"DATABASE_URL": nowhere, "PGQUEUE_STATE_DIR": str(tmp_path), "SPARK_MASTER": ""}
        shell = ["sh", "-c", LEAVE_ONE.format(file=file, command=command)]
        begun.append(
            subprocess.Popen(
                [*request.param, *shell],
                cwd=ROOT,
                env={**os.environ, **given},
                preexec_fn=None if request.param else _adopt,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return First(begun[-1], bool(request.param), file)

    yield start
    for each in begun:
        if each.poll() is None:
            each.kill()
        each.communicate()


def test_a_supervisor_waits_for_orphans_and_ends_when_it_is_told(start: Start) -> None:
    first = start(f"{sys.executable} manage.py supervise")
    until(lambda: any(map(hears_sigterm, first.workers())), what="the supervisor below it, which hears signals")
    until(first.orphan_is_gone, what="the orphan to be waited for")
    os.kill(first.pid, signal.SIGTERM)
    within(10, lambda: first.started.poll() is not None, what="the end, well within the time that is given")
    assert first.started.returncode == 0


@pytest.mark.parametrize(("ends", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137)])
def test_init_process_exits_with_the_code_of_its_child(start: Start, ends: str, code: int) -> None:
    work = "import os, sys; from pgqueue_admin.workers.supervisor.init_process import stay_behind; stay_behind(); "
    first = start(f'{sys.executable} -c "{work}{ends}"')
    assert first.started.wait(60) == code


def test_elsewhere_nobody_stays_behind() -> None:
    imported = "import os; from pgqueue_admin.workers.supervisor.init_process import stay_behind"
    said = f"{imported}; a = os.getpid(); stay_behind()"
    ran = subprocess.run([sys.executable, "-c", f"{said}; print(a == os.getpid())"], cwd=ROOT, capture_output=True)
    assert ran.stdout == b"True\n"


def hears_sigterm(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:  # it ended after it was listed
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
