"""Child processes of a benchmark: each answers one line of input with one line of figures."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Child = subprocess.Popen[str]


@contextmanager
def side(*words: str, module: str = "bench.history_side", **environment: str) -> Iterator[Child]:
    """Start a child in its own session, as the supervisor does. It ends when its stdin closes."""
    command, pipe = [sys.executable, "-m", module, *words], subprocess.PIPE
    environ = {**os.environ, **environment}
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True, env=environ)
    try:
        yield child
    finally:
        with suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=60)
        child.kill()
        child.wait()


def ask(child: Child) -> None:
    assert child.stdin
    print(file=child.stdin, flush=True)


def answer(child: Child, seconds: float = 30) -> list[float]:
    """Read one line of figures. Raises SystemExit if none arrives in time."""
    assert child.stdout
    if not select.select([child.stdout], [], [], seconds)[0]:
        raise SystemExit(f"Process {child.pid} has said nothing for {seconds:.0f} s.")
    line: str = child.stdout.readline()
    if not line:
        raise SystemExit(f"Process {child.pid} has ended.")
    return [float(word) for word in line.split()]
