"""Going last: a process whose work can wait leaves the processors to others."""

import os
from contextlib import suppress
from pathlib import Path

LAST = 19
_GROUP_LAST = 10  # a tenth of a processor that others want, so that it ends where they want all of it
_GROUP = Path("/proc/self/autogroup")


def go_last() -> None:
    """Nice alone is not enough: Linux shares processors among sessions first, and nice counts only within one."""
    os.setpriority(os.PRIO_PROCESS, 0, LAST)
    if os.getsid(0) == os.getpid():  # else it is the session of somebody's shell
        with suppress(OSError):  # a kernel that does not group by session
            _GROUP.write_text(str(_GROUP_LAST))
