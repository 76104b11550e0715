"""Conditions that a program checks before it starts."""

from django.core.management.base import CommandError

from pgqueue_admin.archive import schema
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import pooler_check
from pgqueue_admin.models.queue_database import queue_database

WAITED = 5.0  # seconds; a locked table does not prevent a start


def insist_on_own_sessions(*beside: str) -> None:
    """Raises CommandError."""
    pooler_check.insist(*beside, refusal=CommandError)


def insist_on_tables() -> None:
    """Raises CommandError if the engine's tables are older or newer. It does not wait for a database, either."""
    of = queue_database()
    try:
        with of.dialect.connect(
            of.dsn, application_name="pgqueue-admin start", fail_fast=True, statement_timeout=WAITED
        ) as connection:
            found = schema.version(connection)
    except DatabaseError:
        return
    if found is not None and found != schema.VERSION:
        cure = "run manage.py engine_schema" if found < schema.VERSION else "update the program"
        raise CommandError(
            f"The engine's tables are of version {found}, and this program needs {schema.VERSION}: {cure}."
        )
