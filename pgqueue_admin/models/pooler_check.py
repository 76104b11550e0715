"""Whether the databases' addresses lead to sessions of one's own, which locks, LISTEN and settings need."""

from functools import partial
from typing import Any

from django.conf import settings

from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.pooler_check import has_own_sessions
from pgqueue_admin.models.queue_database import console_dsn, looked_at, queue_database

ANSWER_SECONDS = 5.0  # a pooler with a single session has none for the second who asks


def refusals(aliases: list[str]) -> list[str]:
    """A sentence for each database, unless it is one of ours, or one that does not answer."""
    dsns = {"default": ("DATABASE_URL", console_dsn()), "queues": ("QUEUES_URL", queue_database().dsn)}
    asked = {dsns[alias][1]: dsns[alias][0] for alias in reversed(aliases) if not _is_ours(alias)}
    if "queues" in aliases:
        asked |= {
            each.dsn: f"QUEUES_URL_{each.alias.upper()}"
            for each in looked_at()
            if each.dsn not in asked and each.dialect.supports_notify
        }
    return [sentence(name) for dsn, name in asked.items() if is_shared(dsn)]


def is_shared(dsn: str) -> bool:
    """Whether a pooler lends its sessions anew with each transaction."""
    named: dict[str, Any] = {"application_name": "pgqueue-admin start", "prepared_statements": 0, "impatient": True}
    try:
        return not has_own_sessions(partial(postgresql().connect, dsn, answer_seconds=ANSWER_SECONDS, **named))
    except DatabaseError:
        return False


def sentence(name: str) -> str:
    return (
        f"{name} leads to a pooler in transaction mode, where sessions are not one's own: locks, LISTEN and session"
        " settings do not hold there. Use its session mode, or the server's own port."
    )


def _is_ours(alias: str) -> bool:
    return bool(settings.PGQUEUE["OURS"]["console" if alias == "default" else alias])
