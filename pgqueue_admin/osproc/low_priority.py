"""Lowers the scheduling priority of background work."""

import ctypes
import os
import platform
from contextlib import suppress
from pathlib import Path

LAST = 19
_GROUP_LAST = 10  # a tenth of a contended processor, so that work still ends
_GROUP = Path("/proc/self/autogroup")
_LONGEST_SLICE = 100_000_000  # ns, the most that Linux takes
_SET_ATTRIBUTES = {"x86_64": 314, "aarch64": 274}  # the system call: libc of Debian 12 has no function for it


class _Attributes(ctypes.Structure):
    """struct sched_attr of sched_setattr(2)."""

    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("slice", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    ]


def go_last() -> None:
    """Lower our priority. Nice alone is not enough: Linux divides processors among sessions; nice counts within one."""
    os.setpriority(os.PRIO_PROCESS, 0, LAST)
    _be_interrupted()
    if os.getsid(0) == os.getpid():  # else it is a shell's session
        with suppress(OSError):  # a kernel without autogroups
            _GROUP.write_text(str(_GROUP_LAST))


def _be_interrupted() -> None:
    """Set the longest slice: a waking process preempts longer slices (Linux 6.12), else it waits for their end."""
    if number := _SET_ATTRIBUTES.get(platform.machine()):
        wanted = _Attributes(ctypes.sizeof(_Attributes), os.SCHED_BATCH, 0, LAST, 0, _LONGEST_SLICE)
        ctypes.CDLL(None).syscall(number, 0, ctypes.byref(wanted), 0)
