"""Endpoints in Django admin: their settings, to look at. They are changed on the console, with what that would do."""

from django.contrib import admin

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import Endpoint


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    console_page = "endpoint"
    list_display = (
        "name",
        "kind",
        "ours",
        "schema",
        "table",
        "desired_processes",
        "paused",
        "peek_delay_ms",
        "concurrency",
    )
    list_filter = ("kind", "ours")
    search_fields = ("name",)

    def console_url(self, object_id: str) -> str:
        if not object_id.isdecimal():
            return ""
        name = Endpoint.objects.filter(pk=object_id).values_list("name", flat=True).first()
        return super().console_url(name) if name else ""
