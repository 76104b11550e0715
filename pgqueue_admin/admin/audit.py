"""The audit in Django admin, read-only: who did what, and what it changed."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString

from pgqueue_admin.admin import list_cells
from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import AuditEntry, settings_words
from pgqueue_admin.services import content_access


@admin.register(AuditEntry)
class AuditAdmin(ReadOnlyAdmin):
    list_display = ("at", "who", "verb", "noun", "about", "changed", "count", "why", "origin", "operation_id")
    list_filter = ("noun",)
    search_fields = ("subject__exact", "who__exact")
    search_help_text = "Whole subject, or who."
    fields = ("at", "who", "verb", "noun", "about", "count", "change", "reason", "origin", "operation_id")
    readonly_fields = ("about", "about_figures", "change", "change_figures")

    @admin.display(description="subject")
    def about(self, entry: AuditEntry) -> SafeString:
        return (
            list_cells.table(entry.subject) if entry.noun in {"queue", "message"} else list_cells.fitting(entry.subject)
        )

    @admin.display(description="subject")
    def about_figures(self, entry: AuditEntry) -> SafeString:
        """The subject without search terms, which may quote messages."""
        return list_cells.fitting("a search") if entry.noun == "archive" else self.about(entry)

    @admin.display(description="before → after")
    def changed(self, entry: AuditEntry) -> SafeString:
        return list_cells.fitting(self.change(entry), 60)

    @admin.display(description="before → after")
    def change(self, entry: AuditEntry) -> str:
        """The change in the console's words; empty if the act changed no setting."""
        return settings_words.change(entry.before, entry.after)

    @admin.display(description="before → after")
    def changed_figures(self, entry: AuditEntry) -> SafeString:
        return list_cells.fitting(self.change_figures(entry), 60)

    @admin.display(description="before → after")
    def change_figures(self, entry: AuditEntry) -> str:
        return "" if entry.noun == "archive" else self.change(content_access.NOTHING.entry(entry))

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._readable(request, self.list_display)

    def get_fields(self, request: HttpRequest, obj: AuditEntry | None = None) -> Any:
        return self._readable(request, self.fields)

    def _readable(self, request: HttpRequest, names: Sequence[str]) -> list[str]:
        """Name the changed headers but not their values if message content is withheld."""
        is_refused = content_access.of(request.user).withheld
        return [f"{name}_figures" if is_refused and name in {"about", "changed", "change"} else name for name in names]

    @admin.display(description="reason")
    def why(self, entry: AuditEntry) -> SafeString:
        return list_cells.fitting(entry.reason, 40)
