"""The audit in Django admin: who did what. Nobody edits or deletes it."""

from django.contrib import admin

from pgqueue_admin.admin.read_only import ReadOnly
from pgqueue_admin.records.models import AuditEntry


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ("at", "who", "verb", "noun", "subject", "count", "reason", "origin", "operation_id")
    list_filter = ("noun",)
    search_fields = ("subject__exact", "who__exact")
    search_help_text = "Whole subject, or who."
