"""Entry point of managed processes: sets parent-death SIGKILL, then runs Django's command line."""

import ctypes
import faulthandler
import os
import signal
import sys

PARENT = "PGQUEUE_PARENT"
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel send SIGKILL when the parent ends; exit if it has already ended.

    No clean-up is needed: the rollback of a killed process returns its messages.
    """
    expected = os.environ.get(PARENT)
    if not expected:
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(expected):
        sys.exit(f"process {expected}, which started this one, is gone")


def main() -> None:
    die_with_parent()
    faulthandler.enable(all_threads=False)  # after a segmentation fault, the log names the line of code
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
