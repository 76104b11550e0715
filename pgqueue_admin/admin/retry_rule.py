"""Retry rules in Django admin: view and remove; the console's page adds them."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import RetryRule
from pgqueue_admin.services import retry_rules
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.permissions import refusal_for


def may_set(request: HttpRequest) -> bool:
    return refusal_for(request.user, "set") is None


@admin.register(RetryRule)
class RetryRuleAdmin(ReadOnlyAdmin):
    list_display = ("id", "message_type", "queue", "target", "who", "created_at")
    actions = ("remove",)

    def has_set_permission(self, request: HttpRequest) -> bool:
        return may_set(request)

    @admin.action(description="Remove", permissions=["set"])
    def remove(self, request: HttpRequest, chosen: QuerySet[RetryRule]) -> None:
        done = 0
        try:
            for number in list(chosen.values_list("pk", flat=True)):
                retry_rules.remove(number, request.user, "admin")
                done += 1
        except OperationRefused as error:
            self.message_user(request, str(error), messages.ERROR)
        self.message_user(request, f"{pluralize(done, 'retry rule')} removed.")
