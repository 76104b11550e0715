"""Database of each model: ``default`` for records; ``queues`` for unmanaged models of engine tables."""

from typing import Any

from django.db.models import Model


class Router:
    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "default" if model._meta.managed else "queues"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Never migrate a queue database: it may be production."""
        return db == "default"
