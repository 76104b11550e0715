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

# What Spark's Python workers on this machine are started with: our own Python, reading the pyspark that is installed.
# Spark puts a zip of pyspark before it, and what comes from a zip is compiled anew by each process: a second of it.
_WRAPPER = """#!/bin/bash
export PYTHONPATH="${{PYTHONPATH//pyspark.zip/}}"
exec {python} "$@"
"""


def executable(folder: Path) -> Path:
    """``folder``: where it may be written; where nothing may be executed there, Python itself."""
    wrapper = folder / "bin/python"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    made = wrapper.with_suffix(f".{os.getpid()}")
    made.write_text(_WRAPPER.format(python=shlex.quote(sys.executable)))
    made.chmod(0o755)
    made.replace(wrapper)  # another driver may be starting workers with it
    return wrapper if os.access(wrapper, os.X_OK) else Path(sys.executable)


# Where a driver and its Java leave what they need only while they run: libraries, shuffles, what sorting spills.
_PREFIX = "driver-"


@cache
def scratch_folder(scratch: Path) -> Path:
    """This process's until it ends, however it ends and however often it starts Spark; those of drivers that have ended
    go.

    Below ``scratch`` and not in /tmp: there nothing may be executed on many machines, and nobody would clean up.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    with (scratch / "drivers.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)  # else another driver could take the new one for one that is over
        for other in scratch.glob(f"{_PREFIX}*"):
            if not _is_held(other):
                shutil.rmtree(other, ignore_errors=True)
        mine = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch))
        fcntl.flock(os.open(mine, os.O_RDONLY), fcntl.LOCK_EX)  # never closed
    return mine


def _is_held(place: Path) -> bool:
    """By a process that lives: the kernel lets go of a lock whatever ends its owner."""
    looked_at = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(looked_at, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(looked_at)
    return False


# An account that is only a number, as containers have it. Java and Hadoop want a name and a home: no file has them.
def account_name() -> str:
    """What such an account is called here; empty for one that the system knows."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return f"uid-{os.geteuid()}"
    return ""


def account_options(scratch: Path) -> str:
    """For Java, which would take ``?`` for both."""
    if not (called := account_name()):
        return ""
    os.environ.setdefault("SPARK_USER", called)
    return f"-Duser.name={called} {shlex.quote(f'-Duser.home={scratch}')}"


def sign_in(session: Any) -> None:
    """Hadoop asks the system itself who this is, with each file, and refuses whoever has no name there."""
    if called := account_name():
        hadoop = session.sparkContext._jvm.org.apache.hadoop.security.UserGroupInformation
        hadoop.setLoginUser(hadoop.createRemoteUser(called))
