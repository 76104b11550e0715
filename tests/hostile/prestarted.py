"""``python -m module`` in a fork of an interpreter that has started: its imports cost a quarter of a second once.

The module runs as before: as ``__main__`` of a process of its own, with its arguments, stdin, stdout and exit code.
"""

import json
import math
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]


class Interpreter:
    """``run`` takes the place of ``subprocess.run``. Programs are run one after the other."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, *imports: str):
        self._imports, self._turn = imports, threading.Lock()

    @cached_property
    def _pipes(self) -> tuple[int, IO[str]]:
        """To ask the one that forks, and to hear from it: started by the first who runs something."""
        reads, asks = os.pipe()
        hears, writes = os.pipe()
        command = [sys.executable, "-m", __name__, str(reads), str(writes), *self._imports]
        self._child = subprocess.Popen(command, pass_fds=(reads, writes), cwd=ROOT)
        os.close(reads)
        os.close(writes)
        return asks, os.fdopen(hears)

    def run(
        self, command: list[str], *, input: str, capture_output: bool, text: bool, timeout: float, cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        assert command[:2] == [sys.executable, "-m"]
        assert (capture_output, text, cwd) == (True, True, ROOT)
        with self._turn, tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
            for path, said in zip(files, (input, "", ""), strict=True):
                path.write_text(said)
            asked = {"command": command[2:], "files": [str(each) for each in files], "seconds": math.ceil(timeout)}
            asks, answers = self._pipes
            os.write(asks, f"{json.dumps(asked)}\n".encode())
            code = int(answers.readline())
            return subprocess.CompletedProcess(command, code, files[1].read_text(), files[2].read_text())

    def close(self) -> None:
        if "_pipes" in vars(self):
            asks, answers = self._pipes
            os.close(asks)
            answers.close()
            self._child.wait()


@contextmanager
def interpreter(*imports: str) -> Iterator[Interpreter]:
    made = Interpreter(*imports)
    try:
        yield made
    finally:
        made.close()


def _serve(asked: int, told: int) -> None:
    with open(asked) as lines, open(told, "w", buffering=1) as answers:
        for line in lines:
            if not (pid := os.fork()):
                _run(**json.loads(line))
            answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")


def _run(command: list[str], files: list[str], seconds: int) -> NoReturn:
    for number, path in enumerate(files):
        os.dup2(os.open(path, os.O_RDWR), number)
    signal.alarm(seconds)
    code: Any = 0
    try:
        sys.argv[1:] = command[1:]
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in sys.argv[3:]:
        __import__(name)
    _serve(int(sys.argv[1]), int(sys.argv[2]))
