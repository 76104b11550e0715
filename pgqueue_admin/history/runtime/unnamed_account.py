"""An account that is only a number, as containers have it. Java and Hadoop want a name and a home: no file has them."""

import os
import pwd
import shlex
from pathlib import Path
from typing import Any


def name() -> str:
    """What such an account is called here; empty for one that the system knows."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return f"uid-{os.geteuid()}"
    return ""


def options(scratch: Path) -> str:
    """For Java, which would take ``?`` for both."""
    if not (called := name()):
        return ""
    os.environ.setdefault("SPARK_USER", called)
    return f"-Duser.name={called} {shlex.quote(f'-Duser.home={scratch}')}"


def sign_in(session: Any) -> None:
    """Hadoop asks the system itself who this is, with each file, and refuses whoever has no name there."""
    if called := name():
        hadoop = session.sparkContext._jvm.org.apache.hadoop.security.UserGroupInformation
        hadoop.setLoginUser(hadoop.createRemoteUser(called))
