"""Acts as init where this is process 1: a child does the work, orphans are reaped.

Orphans become children of process 1, and stay zombies until it waits for them.
"""

import ctypes
import os
import signal

from pgqueue_admin.workers.processes.child_bootstrap import PR_SET_PDEATHSIG

_PR_GET_CHILD_SUBREAPER = 37
_PASSED_ON = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
_AWAITED = {signal.SIGCHLD, *_PASSED_ON}


def stay_behind() -> None:
    """Where orphans come to this process: fork; return in the child, and exit with its exit code. Else return at once.

    Call it before any thread starts and any session opens.
    """
    if not _adopts():
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    child = os.fork()
    if child:
        os._exit(_until_over(child))
    _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setpgid(0, 0)  # else Ctrl-C would reach it twice: from the terminal, and passed on
    signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _adopts() -> bool:
    adopts = ctypes.c_int(0)
    _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(adopts))
    return os.getpid() == 1 or bool(adopts.value)


def _until_over(child: int) -> int:
    """Pass signals on and reap children; return the child's exit code as a shell does."""
    while (status := _reaped().get(child)) is None:  # some may have ended before
        number = signal.sigwait(_AWAITED)
        if number in _PASSED_ON:
            os.kill(child, number)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _reaped() -> dict[int, int]:
    """All ended children, with their status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not pid:
            return ended
        ended[pid] = status


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
