"""An idle control group: Linux runs it only where nobody else wants a processor.

Made where the system lets us: mostly as root. Elsewhere what low_priority.py does is all there is.
"""

import re
from contextlib import suppress
from pathlib import Path

NAME = "pgqueue-idle"
_PROC = Path("/proc/self")
_TENTH = {"cpu.shares": "110", "cpu.weight": "11"}  # of a processor that others want; the name is that of the version


def put(pid: int) -> bool:
    """A process, with all it starts from now on. False: the system does not let us, or has no such groups."""
    try:
        place = _place()
        place.mkdir(exist_ok=True)
        (place / "cpu.idle").write_text("1")
        (place / "cgroup.procs").write_text(str(pid))
    except OSError:
        return False
    return True


def insist() -> None:
    """Take a tenth of a processor even where others want all of it, so that what was begun ends."""
    with suppress(OSError):
        place = _place()
        (place / "cpu.idle").write_text("0")
        for name, share in _TENTH.items():
            if (place / name).exists():
                (place / name).write_text(share)


def stand_back() -> None:
    """None, again."""
    with suppress(OSError):
        (_place() / "cpu.idle").write_text("1")


def _place() -> Path:
    """Below our own group. Raises FileNotFoundError where the kernel has none for processors."""
    groups = (line.split(":", 2) for line in (_PROC / "cgroup").read_text().splitlines())
    ours = {controllers: path for _, controllers, path in groups}
    for controllers, path in sorted(ours.items(), reverse=True):  # the unified hierarchy, without a name, last
        if not controllers or "cpu" in controllers.split(","):
            return _mounted(controllers) / path.lstrip("/") / NAME
    raise FileNotFoundError("this kernel has no control groups for processors")


def _mounted(controllers: str) -> Path:
    """Where the hierarchy is looked at. Raises FileNotFoundError."""
    kind = rf"cgroup \S+ \S*\b{controllers}\b" if controllers else "cgroup2 "
    for mount in (_PROC / "mountinfo").read_text().splitlines():
        if re.search(f" - {kind}", mount):
            return Path(mount.split()[4])
    raise FileNotFoundError("the control groups for processors are mounted nowhere")
