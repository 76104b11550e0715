"""The Django application: its label, and what is connected when Django starts."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, register
from django.db.backends.signals import connection_created

from pgqueue_admin.osproc import gc_freeze


class PgqueueAdmin(AppConfig):
    name = "pgqueue_admin"
    label = "pgqueue"
    verbose_name = "Queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(_check_settings, "pgqueue")
        register(_check_databases, Tags.database)
        connection_created.connect(_apply_session_settings, dispatch_uid="pgqueue")
        gc_freeze.loaded()


def _check_settings(**options: Any) -> list[CheckMessage]:
    """Imported when something is checked: managed processes check nothing, and start without half of the alerts."""
    from pgqueue_admin.alerts import checks

    return [found for check in checks.OF_SETTINGS for found in check(**options)]


def _check_databases(**options: Any) -> list[CheckMessage]:
    from pgqueue_admin.alerts import checks

    return [found for check in checks.OF_DATABASES for found in check(**options)]


def _apply_session_settings(connection: Any, **_: Any) -> None:
    from pgqueue_admin.dialects.postgresql import search_paths, session_settings

    session_settings.fit(connection.connection)
    if connection.pool is None:  # a pool has done so once
        session_settings.anew(connection.connection, search_paths.of_alias(connection.alias))
