"""An idle control group: Linux runs its processes only if no other process wants the processor.

Creating it usually requires root. Without it, low_priority.py alone applies.
"""

import re
from contextlib import suppress
from pathlib import Path

NAME = "pgqueue-idle"
_PROC = Path("/proc/self")
_TENTH = {"cpu.shares": "110", "cpu.weight": "11"}  # of a contended processor; in cgroup v1 and v2


def put(pid: int) -> bool:
    """Move a process, with its later children, into the group. False if not permitted or not supported."""
    try:
        place = _place()
        place.mkdir(exist_ok=True)
        (place / "cpu.idle").write_text("1")
        (place / "cgroup.procs").write_text(str(pid))
    except OSError:
        return False
    return True


def insist() -> None:
    """Take a tenth of a contended processor, so that running work ends."""
    with suppress(OSError):
        place = _place()
        (place / "cpu.idle").write_text("0")
        for name, share in _TENTH.items():
            if (place / name).exists():
                (place / name).write_text(share)


def stand_back() -> None:
    """Make the group idle again."""
    with suppress(OSError):
        (_place() / "cpu.idle").write_text("1")


def _place() -> Path:
    """The group's folder, below our own group. Raises FileNotFoundError without control groups for processors."""
    groups = (line.split(":", 2) for line in (_PROC / "cgroup").read_text().splitlines())
    ours = {controllers: path for _, controllers, path in groups}
    for controllers, path in sorted(ours.items(), reverse=True):  # the unified hierarchy, without a name, last
        if not controllers or "cpu" in controllers.split(","):
            return _mounted(controllers) / path.lstrip("/") / NAME
    raise FileNotFoundError("this kernel has no control groups for processors")


def _mounted(controllers: str) -> Path:
    """The mount point of the hierarchy. Raises FileNotFoundError."""
    kind = rf"cgroup \S+ \S*\b{controllers}\b" if controllers else "cgroup2 "
    for mount in (_PROC / "mountinfo").read_text().splitlines():
        if re.search(f" - {kind}", mount):
            return Path(mount.split()[4])
    raise FileNotFoundError("the control groups for processors are mounted nowhere")
