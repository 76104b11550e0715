"""Celery's own tables in Django admin: read-only and listed last. The code defines what runs, and when."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from pgqueue_admin.admin.base import ReadOnlyAdmin

_LISTED = {
    "periodictask": ("name", "enabled", "interval", "crontab", "last_run_at", "total_run_count"),
    "taskresult": ("task_id", "periodic_task_name", "task_name", "date_done", "status", "worker"),
    "groupresult": ("group_id", "date_done"),
}
_APPS = [each.label for each in apps.get_app_configs() if each.label.startswith("django_celery_")]


class CeleryAdmin(ReadOnlyAdmin):
    """Rows hold arguments and results of tasks: only the view permission opens them, not a right to act."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return admin.ModelAdmin.has_view_permission(self, request, obj)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return _LISTED.get(self.opts.model_name or "", ("__str__",))


def _celery_last(request: HttpRequest, app_label: str | None = None) -> list[Any]:
    found = _listed(request, app_label)
    return sorted(found, key=lambda each: each["app_label"] in _APPS)


for label in _APPS:
    theirs = [model for model in apps.get_app_config(label).get_models() if admin.site.is_registered(model)]
    admin.site.unregister(theirs)
    admin.site.register(theirs, CeleryAdmin)
_listed = admin.site.get_app_list
admin.site.get_app_list = _celery_last  # type: ignore[method-assign]
