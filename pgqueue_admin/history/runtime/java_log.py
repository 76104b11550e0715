"""Logging of Spark's Java: errors only, in the format of our logs."""

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
    """Java option for our log format, or Spark prints six lines per start. ``log_format``: PGQUEUE_LOG_FORMAT."""
    told = scratch / f"log4j2-{log_format}.properties"
    scratch.mkdir(parents=True, exist_ok=True)
    told.write_text(_properties(log_format), encoding="utf-8")
    return shlex.quote(f"-Dlog4j2.configurationFile={told}")


def _properties(log_format: str) -> str:
    lines = [
        "rootLogger.level = error",
        # Spark's shell logger: without its own level, it reports twice that it changes the log level
        "logger.shell.name = org.apache.spark.api.python.PythonGatewayServer",
        "logger.shell.level = error",
        "rootLogger.appenderRef.out.ref = out",
        "appender.out.type = Console",
        "appender.out.name = out",
        "appender.out.target = SYSTEM_ERR",
        *(f"appender.out.layout.{name} = {said}" for name, said in _LAYOUTS[log_format].items()),
    ]
    return "\n".join(lines) + "\n"


# Standard error of Spark's Java: passed on unchanged; the last lines are kept to explain its end.
_KEPT = 60  # lines: an error with its causes
_IN_A_TRACE = ("\tat ", "\t... ", "Suppressed: ", "#\n")
_NOTHING = ("WARNING: Using incubator modules", "WARNING: package sun.security.action not in")  # absent from Java 25 on
_lines: deque[str] = deque(maxlen=_KEPT)


@contextmanager
def heard() -> Iterator[None]:
    """Capture the standard error of processes started inside, for as long as they live."""
    _lines.clear()
    ours = os.dup(2)
    reads, writes = os.pipe()
    os.dup2(writes, 2)
    os.close(writes)
    threading.Thread(target=_pass_on, args=(reads, ours), name="java's stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(ours, 2)  # the pipe ends with the last process started inside


def _pass_on(reads: int, on_to: int) -> None:
    with os.fdopen(reads, "rb") as said, os.fdopen(on_to, "wb", buffering=0) as stderr:
        for line in said:
            stderr.write(line)
            _lines.append(line.decode(errors="replace"))


def fatal() -> str:
    """Why a running Java ended, if it said so. Other output may be old and is no cause."""
    ends = [line.strip("# \n") for line in list(_lines) if "OutOfMemoryError" in line or line.startswith("# ")]
    return (ends or [""])[0]


def cause() -> str:
    """The most telling line of a failed start; empty if there was no output."""
    told = [line.strip() for line in list(_lines) if line.strip() and not line.startswith((*_IN_A_TRACE, *_NOTHING))]
    found = [line for line in told if line.startswith("Caused by: ")] or [
        line for line in told if "Exception" in line or "Error" in line
    ]
    return (found or told or [""])[-1].removeprefix("Caused by: ").lstrip("# ")
