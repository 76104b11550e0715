"""How Spark's Java logs: what went wrong, and nothing else, in lines like ours."""

import json
import shlex
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
