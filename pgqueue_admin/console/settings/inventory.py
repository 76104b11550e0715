"""Settings that are not database rows, each with its value and its source, as this web process runs with them."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from pgqueue_admin.dialects import dialect_for
from pgqueue_admin.formatting.durations import plain
from pgqueue_admin.formatting.numbers import format_int
from pgqueue_admin.formatting.retention import kept
from pgqueue_admin.models.queue_database import console_dsn, looked_at, queue_database


@dataclass(frozen=True, slots=True)
class ListedSetting:
    name: str
    value: str
    where: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    word: str
    settings: list[ListedSetting]


def groups() -> list[ListedGroup]:
    return [ListedGroup(word, [_setting(*row) for row in rows]) for word, rows in _GROUPS]


def without_password(dsn: str) -> str:
    """Which server and which user, without the password."""
    return dialect_for(dsn).without_password(dsn)


def _setting(name: str, variable: str, value: Callable[[], str], hint: str = "") -> ListedSetting:
    return ListedSetting(name, value(), _where(variable), hint)


def _where(variable: str) -> str:
    if not variable:
        return "fixed"
    is_said = variable in os.environ if variable == "SPARK_MASTER" else os.environ.get(variable)  # empty: no history
    return f"environment: {variable}" if is_said else f"default; set {variable} to change it"


def _given(name: str) -> Any:
    return settings.PGQUEUE[name]


def _read_from() -> str:
    return without_password(_given("HISTORY_URL") or queue_database().dsn)


def _looked_at() -> str:
    return "; ".join(f"{each.alias}: {without_password(each.dsn)}" for each in looked_at()) or "none"


def _writable() -> str:
    return ", ".join(each.alias for each in looked_at() if each.is_writable) or "none"


def _schemas_there() -> str:
    return "; ".join(f"{each.alias}: {', '.join(each.schemas)}" for each in looked_at()) or "none"


def _mail() -> str:
    if settings.EMAIL_BACKEND.endswith("filebased.EmailBackend"):
        return f"no server: files in {settings.EMAIL_FILE_PATH}"
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"


_GROUPS: list[tuple[str, list[Any]]] = [
    (
        "Environment",
        [
            ("Name", "ENVIRONMENT", lambda: _given("ENVIRONMENT") or "unnamed", "on every page, in every mail"),
            ("Colour", "PGQUEUE_ENVIRONMENT_COLOUR", lambda: _given("ENVIRONMENT_COLOUR")),
            ("Address in mails", "PUBLIC_URL", lambda: _given("PUBLIC_URL")),
        ],
    ),
    (
        "Databases",
        [
            ("Queues", "QUEUES_URL", lambda: without_password(queue_database().dsn), "read and, for an act, written"),
            ("Queues of other databases", "QUEUES_URL_", _looked_at, "read; a name behind it is the alias"),
            ("Written to among these", "PGQUEUE_WRITABLE_", _writable, "dead messages put back, error queues emptied"),
            ("The console's own", "DATABASE_URL", lambda: without_password(console_dsn())),
        ],
    ),
    (
        "Discovery",
        [
            ("Schemas watched", "PGQUEUE_QUEUE_SCHEMAS", lambda: ", ".join(_given("SCHEMAS")) or "none"),
            ("In other databases", "PGQUEUE_QUEUE_SCHEMAS_", _schemas_there),
        ],
    ),
    (
        "Failures",
        [
            (
                "Own code begins with",
                "PGQUEUE_OWN_CODE",
                lambda: ", ".join(_given("OWN_CODE")) or "not said: the first frame that is no framework's",
                "a failure is grouped by its first frame there",
            )
        ],
    ),
    (
        "Sampling",
        [
            ("A sample every", "PGQUEUE_SAMPLE_SECONDS", lambda: plain(_given("SAMPLE_SECONDS"))),
            (
                "Counted exactly up to",
                "",
                lambda: format_int(_given("CAP")),
                "beyond it a figure is an estimate, with ≈",
            ),
        ],
    ),
    (
        "Processes",
        [
            (
                "Hung after",
                "PGQUEUE_LIVENESS_TIMEOUT_SECONDS",
                lambda: plain(_given("LIVENESS_TIMEOUT_SECONDS")) if _given("LIVENESS_TIMEOUT_SECONDS") else "never",
                "without a sign of life: killed",
            ),
            (
                "Given up without an answer after",
                "PGQUEUE_ANSWER_SECONDS",
                lambda: plain(_given("ANSWER_SECONDS")),
                "a database session in which a short statement waits",
            ),
            (
                "Applications with handlers",
                "PGQUEUE_HANDLER_APPS",
                lambda: os.environ.get("PGQUEUE_HANDLER_APPS") or "none",
            ),
            ("Folder of logs", "PGQUEUE_STATE_DIR", lambda: str(_given("VAR") / "log")),
            ("Log level", "PGQUEUE_LOG_LEVEL", lambda: logging.getLevelName(logging.getLogger().level)),
            ("Log format", "PGQUEUE_LOG_FORMAT", lambda: settings.LOG_FORMAT),
        ],
    ),
    (
        "Archive",
        [
            (
                "Decided messages stay",
                "PGQUEUE_ARCHIVE_RETENTION_DAYS",
                lambda: kept(_given("ARCHIVE_RETENTION_DAYS")),
                "dead ones are never removed",
            )
        ],
    ),
    (
        "History",
        [
            ("Spark runs", "SPARK_MASTER", lambda: _given("SPARK_MASTER") or "nowhere: no history is kept"),
            ("Spark's memory", "SPARK_MEMORY", lambda: _given("SPARK_MEMORY")),
            ("Folder of files", "PGQUEUE_HISTORY_DIR", lambda: str(_given("HISTORY_DIR"))),
            ("Rows are read from", "PGQUEUE_HISTORY_URL", _read_from),
            ("Files stay", "PGQUEUE_HISTORY_RETENTION_DAYS", lambda: kept(_given("HISTORY_RETENTION_DAYS"))),
            (
                "Figures by the minute stay",
                "PGQUEUE_TRENDS_MINUTE_RETENTION_DAYS",
                lambda: kept(_given("TRENDS_MINUTE_RETENTION_DAYS")),
            ),
            (
                "Figures by the hour stay",
                "PGQUEUE_TRENDS_HOUR_RETENTION_DAYS",
                lambda: kept(_given("TRENDS_HOUR_RETENTION_DAYS")),
                "failures, too",
            ),
            ("Bodies", "PGQUEUE_HISTORY_BODIES", lambda: _given("HISTORY_BODIES"), "truncate: their first 4,096 bytes"),
            ("Headers masked", "PGQUEUE_MASKED_HEADERS", lambda: ", ".join(_given("MASKED_HEADERS")) or "none"),
            ("Hours are compared in", "PGQUEUE_BASELINE_TIME_ZONE", lambda: _given("BASELINE_TIME_ZONE")),
        ],
    ),
    (
        "Mail",
        [
            ("Server", "EMAIL_URL", _mail),
            ("Warnings go to", "PGQUEUE_ALERT_TO", lambda: ", ".join(_given("ALERT_TO")) or "nobody"),
            ("From", "PGQUEUE_EMAIL_FROM", lambda: settings.DEFAULT_FROM_EMAIL),
            ("Greets the server as", "PGQUEUE_EMAIL_HELO", lambda: _given("EMAIL_HELO") or "its address in brackets"),
        ],
    ),
    (
        "Signing in",
        [
            ("A sign-in lasts", "PGQUEUE_SESSION_HOURS", lambda: plain(_given("SESSION_HOURS") * 3600)),
            ("Without a page it ends after", "PGQUEUE_IDLE_MINUTES", lambda: plain(_given("IDLE_MINUTES") * 60)),
        ],
    ),
]
