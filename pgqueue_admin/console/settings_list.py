"""Every setting of the console that is not a row: its value, and who decides it."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from pgqueue_admin.records.source import console_dsn, source
from pgqueue_admin.wording.durations import plain
from pgqueue_admin.wording.figures import integer


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str
    where: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    word: str
    settings: list[Setting]


def groups() -> list[Group]:
    return [Group(word, [_setting(*row) for row in rows]) for word, rows in _GROUPS]


def without_password(dsn: str) -> str:
    """Where a server is, and as whom; never with which secret."""
    at = urlsplit(dsn)
    who = f"{at.username}@" if at.username else ""
    return f"{at.scheme}://{who}{at.hostname or 'local socket'}{f':{at.port}' if at.port else ''}{at.path}"


def _setting(name: str, variable: str, value: Callable[[], str], hint: str = "") -> Setting:
    return Setting(name, value(), _where(variable), hint)


def _where(variable: str) -> str:
    if not variable:
        return "fixed"
    return f"environment: {variable}" if os.environ.get(variable) else f"default; set {variable} to change it"


def _given(name: str) -> Any:
    return settings.PGQUEUE[name]


def _mail() -> str:
    if settings.EMAIL_BACKEND.endswith("filebased.EmailBackend"):
        return f"no server: files in {settings.EMAIL_FILE_PATH}"
    return f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"


_GROUPS: list[tuple[str, list[Any]]] = [
    (
        "Environment",
        [
            ("Name", "ENVIRONMENT", lambda: _given("ENVIRONMENT") or "unnamed", "on every page, in every mail"),
            ("Colour", "ENVIRONMENT_COLOUR", lambda: _given("ENVIRONMENT_COLOUR")),
            ("Address in mails", "PUBLIC_URL", lambda: _given("PUBLIC_URL")),
        ],
    ),
    (
        "Databases",
        [
            ("Queues", "QUEUES_URL", lambda: without_password(source().dsn), "read and, for an act, written"),
            ("The console's own", "DATABASE_URL", lambda: without_password(console_dsn())),
        ],
    ),
    (
        "Discovery",
        [("Schemas watched", "QUEUE_SCHEMAS", lambda: ", ".join(_given("SCHEMAS")) or "none")],
    ),
    (
        "Sampling",
        [
            ("A sample every", "SAMPLE_SECONDS", lambda: plain(_given("SAMPLE_SECONDS"))),
            ("Counted exactly up to", "", lambda: integer(_given("CAP")), "beyond it a figure is an estimate, with ≈"),
        ],
    ),
    (
        "Mail",
        [
            ("Server", "EMAIL_URL", _mail),
            ("Warnings go to", "ALERT_TO", lambda: ", ".join(_given("ALERT_TO")) or "nobody"),
            ("From", "EMAIL_FROM", lambda: settings.DEFAULT_FROM_EMAIL),
        ],
    ),
]
