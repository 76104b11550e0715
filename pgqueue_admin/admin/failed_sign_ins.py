"""Failed sign-ins in Django admin. A name that was typed may be a password that slipped: so not for whoever may act."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.models import FailedSignIn


@admin.register(FailedSignIn)
class FailedSignInAdmin(ReadOnlyAdmin):
    list_display = ("at", "name", "address", "place")
    search_fields = ("name__exact", "address__exact")
    search_help_text = "Whole name, or address."

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("pgqueue.view_failedsignin")
