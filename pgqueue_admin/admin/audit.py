"""The audit in Django admin: who did what, and what it changed. Nobody edits or deletes it."""

from django.contrib import admin
from django.utils.safestring import SafeString

from pgqueue_admin.admin import list_cells
from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import AuditEntry, settings_words


@admin.register(AuditEntry)
class AuditAdmin(ReadOnlyAdmin):
    list_display = ("at", "who", "verb", "noun", "about", "changed", "count", "why", "origin", "operation_id")
    list_filter = ("noun",)
    search_fields = ("subject__exact", "who__exact")
    search_help_text = "Whole subject, or who."
    fields = ("at", "who", "verb", "noun", "subject", "count", "change", "reason", "origin", "operation_id")
    readonly_fields = ("change",)

    @admin.display(description="subject")
    def about(self, entry: AuditEntry) -> SafeString:
        return (
            list_cells.table(entry.subject) if entry.noun in {"queue", "message"} else list_cells.fitting(entry.subject)
        )

    @admin.display(description="before → after")
    def changed(self, entry: AuditEntry) -> SafeString:
        return list_cells.fitting(self.change(entry), 60)

    @admin.display(description="before → after")
    def change(self, entry: AuditEntry) -> str:
        """In the console's words; nothing where an act changed no setting."""
        return settings_words.change(entry.before, entry.after)

    @admin.display(description="reason")
    def why(self, entry: AuditEntry) -> SafeString:
        return list_cells.fitting(entry.reason, 40)
