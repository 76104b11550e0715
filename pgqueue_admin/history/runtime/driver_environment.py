"""The environment of Spark's driver: our Python, its folders, and a name for a numeric account."""

import fcntl
import os
import pwd
import shlex
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

# The command of Spark's Python workers on this machine: our own Python with the installed pyspark. Spark puts a zip of
# pyspark before it on the path; each process would compile modules from a zip anew, for a second.
_WRAPPER = """#!/bin/bash
export PYTHONPATH="${{PYTHONPATH//pyspark.zip/}}"
exec {python} "$@"
"""


def executable(folder: Path) -> Path:
    """``folder``: writable; if nothing may be executed there, returns Python itself."""
    wrapper = folder / "bin/python"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    made = wrapper.with_suffix(f".{os.getpid()}")
    made.write_text(_WRAPPER.format(python=shlex.quote(sys.executable)))
    made.chmod(0o755)
    made.replace(wrapper)  # another driver may be starting workers with it
    return wrapper if os.access(wrapper, os.X_OK) else Path(sys.executable)


# Files that a driver and its Java need only while they run: libraries, shuffles, sort spills.
_PREFIX = "driver-"


@cache
def scratch_folder(scratch: Path) -> Path:
    """This process's scratch folder until its end, for any number of Spark starts. Deletes those of ended drivers.

    Below ``scratch``, not /tmp: many machines forbid execution there, and nothing would clean up.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "drivers.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # else another driver could delete the new folder before it is locked
        for other in scratch.glob(f"{_PREFIX}*"):
            if not _is_held(other):
                shutil.rmtree(other, ignore_errors=True)
        mine = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))
        fcntl.flock(os.open(mine, os.O_RDONLY), fcntl.LOCK_EX)  # never closed
    return mine


def _is_held(place: Path) -> bool:
    """Whether a living process holds it: the kernel releases a lock however its owner ends."""
    looked_at = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(looked_at, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(looked_at)
    return False


# Numeric accounts, as in containers. Java and Hadoop need a user name and a home, which no passwd file gives.
def account_name() -> str:
    """A name for a numeric account; empty for an account that the system knows."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return f"uid-{os.geteuid()}"
    return ""


def account_options(scratch: Path) -> str:
    """Java options: without them, both would be ``?``."""
    if not (called := account_name()):
        return ""
    os.environ.setdefault("SPARK_USER", called)
    return f"-Duser.name={called} {shlex.quote(f'-Duser.home={scratch}')}"


def sign_in(session: Any) -> None:
    """Hadoop looks the user up in the system for each file, and refuses an account without a name."""
    if called := account_name():
        hadoop = session.sparkContext._jvm.org.apache.hadoop.security.UserGroupInformation
        hadoop.setLoginUser(hadoop.createRemoteUser(called))
