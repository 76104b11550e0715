"""The Django application: its label, and what is connected when Django starts."""

from django.apps import AppConfig


class PgqueueAdmin(AppConfig):
    name = "pgqueue_admin"
    label = "pgqueue"
    verbose_name = "Queues"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from pgqueue_admin.alerts import checks  # noqa: F401  (registers them)
