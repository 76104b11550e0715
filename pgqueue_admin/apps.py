"""The Django application: its label, and what is connected when Django starts."""

from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class PgqueueAdmin(AppConfig):
    name = "pgqueue_admin"
    label = "pgqueue"
    verbose_name = "Queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from pgqueue_admin.alerts import checks  # noqa: F401  (registers them)

        connection_created.connect(_meaning_what_we_say, dispatch_uid="pgqueue")


def _meaning_what_we_say(connection: Any, **_: Any) -> None:
    from pgqueue_admin.dialects.postgresql import meaning
    from pgqueue_admin.records import schema

    meaning.fit(connection.connection)
    if connection.pool is None and (path := schema.PATHS.get(connection.alias)):  # a pool has set it once
        meaning.alone(connection.connection, path)
