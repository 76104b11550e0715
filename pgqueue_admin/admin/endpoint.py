"""Endpoints in Django admin: their settings, read-only. The console changes them and previews the effect."""

from django.contrib import admin
from django.utils.safestring import SafeString

from pgqueue_admin.admin import list_cells
from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import Endpoint


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    console_page = "endpoint"
    list_display = (
        "called",
        "kind",
        "ours",
        "queue",
        "desired_processes",
        "paused",
        "peek_delay_ms",
        "concurrency",
    )
    list_filter = ("kind", "ours")
    search_fields = ("name",)

    @admin.display(description="name")
    def called(self, endpoint: Endpoint) -> SafeString:
        return list_cells.fitting(endpoint.name, 60)

    @admin.display(description="queue")
    def queue(self, endpoint: Endpoint) -> SafeString:
        return list_cells.fitting(f"{endpoint.schema}.{endpoint.table}", 60)

    def console_url(self, object_id: str) -> str:
        if not object_id.isdecimal():
            return ""
        name = Endpoint.objects.filter(pk=object_id).values_list("name", flat=True).first()
        return super().console_url(name) if name else ""
