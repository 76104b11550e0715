"""Which database a model lives in: records in ``default``; unmanaged models look at engine tables in ``queues``."""

from typing import Any

from django.db.models import Model


class Router:
    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return "default" if model._meta.managed else "queues"

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        """Nothing is ever migrated on a queue database: it may be somebody's production."""
        return db == "default"
