"""Masking rules and reveals in Django admin, read-only; the console's page changes them."""

from django.contrib import admin

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import MaskingReveal, MaskingRule


@admin.register(MaskingRule)
class MaskingRuleAdmin(ReadOnlyAdmin):
    console_page = "masking_rule"
    list_display = ("name", "kind", "pattern", "types")
    exclude = ("version",)


@admin.register(MaskingReveal)
class MaskingRevealAdmin(ReadOnlyAdmin):
    """Each person's latest reveal; the audit has all."""

    list_display = ("person", "began_at", "ends_at", "reason")
