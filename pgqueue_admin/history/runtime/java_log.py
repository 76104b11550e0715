"""How Spark's Java logs: what went wrong, and nothing else, in lines like ours."""

import json
import os
import shlex
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LINE = "%d{yyyy-MM-dd HH:mm:ss,SSS}{UTC} %level %logger[java] %msg%n%throwable"
_JSON = {
    "time": {
        "$resolver": "timestamp",
        "pattern": {"format": "yyyy-MM-dd'T'HH:mm:ss.SSS'+00:00'", "timeZone": "UTC"},
    },
    "level": {"$resolver": "level", "field": "name"},
    "logger": {"$resolver": "logger", "field": "name"},
    "process": "java",
    "text": {"$resolver": "message", "stringified": True},
    "exception": {"$resolver": "exception", "field": "stackTrace", "stackTrace": {"stringified": True}},
}
_LAYOUTS = {
    "line": {"type": "PatternLayout", "pattern": _LINE},
    "json": {"type": "JsonTemplateLayout", "eventTemplate": json.dumps(_JSON)},
}


def option(scratch: Path, log_format: str) -> str:
    """For Java: where it is told so. Without a file of ours Spark says six lines at each start. ``log_format``:
    PGQUEUE_LOG_FORMAT."""
    told = scratch / f"log4j2-{log_format}.properties"
    scratch.mkdir(parents=True, exist_ok=True)
    told.write_text(_properties(log_format), encoding="utf-8")
    return shlex.quote(f"-Dlog4j2.configurationFile={told}")


def _properties(log_format: str) -> str:
    lines = [
        "rootLogger.level = error",
        # what Spark takes for a shell: told nothing of its own, it says twice that it logs otherwise
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer",
        "logger.shell.level = error",
        "rootLogger.appenderRef.out.ref = out",
        "appender.out.type = Console",
        "appender.out.name = out",
        "appender.out.target = SYSTEM_ERR",
        *(f"appender.out.layout.{name} = {said}" for name, said in _LAYOUTS[log_format].items()),
    ]
    return "\n".join(lines) + "\n"


# What Spark's Java says on its standard error: passed on as it comes, its last lines kept for when it ends.
_KEPT = 60  # lines: an error with its causes
_IN_A_TRACE = ("\tat ", "\t... ", "Suppressed: ", "#\n")
_NOTHING = ("WARNING: Using incubator modules", "WARNING: package sun.security.action not in")  # 25 has it no more
_lines: deque[str] = deque(maxlen=_KEPT)


@contextmanager
def heard() -> Iterator[None]:
    """Whoever is started meanwhile is heard for as long as it lives."""
    _lines.clear()
    ours = os.dup(2)
    reads, writes = os.pipe()
    os.dup2(writes, 2)
    os.close(writes)
    threading.Thread(target=_pass_on, args=(reads, ours), name="java's stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)  # the pipe ends with the last who was started


def _pass_on(reads: int, on_to: int) -> None:
    with os.fdopen(reads, "rb") as said, os.fdopen(on_to, "wb", buffering=0) as stderr:
        for line in said:
            stderr.write(line)
            _lines.append(line.decode(errors="replace"))


def fatal() -> str:
    """Why a Java that ran has ended, where it says so; what else it said may be old, and is no cause."""
    ends = [line.strip("# \n") for line in list(_lines) if "OutOfMemoryError" in line or line.startswith("# ")]
    return (ends or [""])[0]


def cause() -> str:
    """Of a start that failed the line that says most; empty if nothing was said."""
    told = [line.strip() for line in list(_lines) if line.strip() and not line.startswith((*_IN_A_TRACE, *_NOTHING))]
    found = [line for line in told if line.startswith("Caused by: ")] or [
        line for line in told if "Exception" in line or "Error" in line
    ]
    return (found or told or [""])[-1].removeprefix("Caused by: ").lstrip("# ")
