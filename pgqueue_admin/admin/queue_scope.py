"""Queue scopes in Django admin: looked at; the console's page changes them. A group that has some is not deleted."""

from django.contrib import admin

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import QueueScope


@admin.register(QueueScope)
class QueueScopeAdmin(ReadOnlyAdmin):
    list_display = ("group", "pattern", "may_act")
