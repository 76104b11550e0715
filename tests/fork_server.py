"""A Python that forks for each program: what it has imported before need not be imported anew.

Each program runs as ``__main__`` of its own process, with its arguments, environment, files and exit code.
"""

import gc
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
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]


class ForkServer:
    """``run`` takes the place of ``subprocess.run`` of ``python -c`` or ``python -m``: one program after the other."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, *imports: str):
        """``imports``: modules that read neither the environment nor settings as they are imported."""
        self._imports, self._turn = imports, threading.Lock()

    @cached_property
    def _server(self) -> "subprocess.Popen[str]":
        """It ends when its pipe is closed, at the latest with this process."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", __name__, *self._imports]
        return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def run(
        self,
        command: list[str],
        *,
        input: str = "",
        capture_output: bool = True,
        text: bool = True,
        timeout: float = 0,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        assert command[0] == sys.executable
        assert (capture_output, text, cwd) == (True, True, ROOT)
        with self._turn, tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
            for path, said in zip(files, (input, "", ""), strict=True):
                path.write_text(said)
            code = self._exit_code(
                {
                    "command": command[1:],
                    "files": [*map(str, files)],
                    "environment": env and dict(env),
                    "seconds": math.ceil(timeout),
                }
            )
            output, errors = files[1].read_text(), files[2].read_text()
        if timeout and code == -signal.SIGALRM:
            raise self.TimeoutExpired(command, timeout, output, errors)
        return subprocess.CompletedProcess(command, code, output, errors)

    def _exit_code(self, request: dict[str, Any]) -> int:
        requests, answers = self._server.stdin, self._server.stdout
        assert requests
        assert answers
        requests.write(f"{json.dumps(request)}\n")
        requests.flush()
        return int(answers.readline())

    def close(self) -> None:
        if "_server" in vars(self):
            self._server.communicate()


def _serve() -> None:
    """By copies of its pipes: a program gets files as its own stdin and stdout."""
    with os.fdopen(os.dup(0)) as requests, os.fdopen(os.dup(1), "w", buffering=1) as answers:
        for line in requests:
            if not (pid := os.fork()):
                _run(**json.loads(line))
            answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")


def _run(command: list[str], files: list[str], environment: dict[str, str] | None, seconds: int) -> NoReturn:
    for number, path in enumerate(files):
        os.dup2(os.open(path, os.O_RDWR), number)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    signal.alarm(seconds)
    code = 0
    try:
        _execute(*command)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


def _execute(way: str, program: str, *arguments: str) -> None:
    sys.argv = [way, *arguments]
    if way == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    for name in sys.argv[1:]:
        import_module(name)
    gc.freeze()  # otherwise each fork looks through it again
    _serve()
