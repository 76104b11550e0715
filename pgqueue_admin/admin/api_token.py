"""API tokens in Django admin: looked at and revoked; manage.py api_token makes them, as one is shown only once."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import ApiToken
from pgqueue_admin.services import api_tokens
from pgqueue_admin.services.api_tokens import TokenRefused
from pgqueue_admin.services.permissions import refusal_for


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ("name", "rights", "created_by", "created_at", "expires_at", "used_at", "revoked_by", "revoked_at")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiToken]) -> None:
        done = 0
        for token in chosen:
            try:
                api_tokens.revoke(token.name, request.user, "admin")
                done += 1
            except TokenRefused as error:
                self.message_user(request, str(error), messages.ERROR)
        self.message_user(request, f"{pluralize(done, 'token')} revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return refusal_for(request.user, "set") is None
