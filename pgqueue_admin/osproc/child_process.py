"""Child processes: each in a session of its own, reaped by us, ended when we end."""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path | None = None,
    dies_with: signal.Signals = signal.SIGKILL,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    **account: Any,
) -> subprocess.Popen[bytes]:
    """Start ``argv``, writing to ``log`` or to our own output. The kernel sends it ``dies_with`` however we end.

    Call it from the main thread: the death signal is bound to the thread that forked.
    """
    output = log.open("ab") if log else None
    try:
        return subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if log else None,
            start_new_session=True,
            preexec_fn=_bound_to(os.getpid(), dies_with),
            cwd=cwd,
            env=env,
            **account,
        )
    finally:
        if output:
            output.close()


def _bound_to(parent: int, dies_with: signal.Signals) -> Callable[[], None]:
    def bind() -> None:  # runs after setuid, which would clear the death signal
        _libc.prctl(_PR_SET_PDEATHSIG, int(dies_with))
        if os.getppid() != parent:  # the parent died before the signal was set
            os._exit(1)

    return bind


def end(child: subprocess.Popen[bytes], *signals: tuple[signal.Signals, float]) -> None:
    """Send each signal and wait its seconds; after the last, kill the child's whole session."""
    for number, seconds in signals:
        if child.poll() is not None:
            return
        child.send_signal(number)
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
    kill_session(child)


def kill_session(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
