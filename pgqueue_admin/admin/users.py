"""People in Django admin: nobody grants or takes over a right they lack. Also tokens, scopes and failed sign-ins."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import ManyToManyField, Model, Q, QuerySet
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest

from pgqueue_admin.admin.base import ReadOnlyAdmin
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import ApiToken, FailedSignIn, QueueScope
from pgqueue_admin.services import api_tokens
from pgqueue_admin.services.api_tokens import TokenRefused
from pgqueue_admin.services.permissions import refusal_for

admin.site.unregister([User, Group])


@admin.register(User)
class PersonAdmin(UserAdmin):
    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _reaches(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _reaches(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fixed = super().get_readonly_fields(request, obj)
        return fixed if _may_all(request) else (*fixed, "is_superuser")

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **options: Any
    ) -> ModelMultipleChoiceField | None:
        if not _may_all(request):
            options["queryset"] = _groups_within(request) if db_field.name == "groups" else _own(request)
        return super().formfield_for_manytomany(db_field, request, **options)


@admin.register(Group)
class PeopleAdmin(GroupAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_change_permission(request, obj) and _covers(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _covers(request, obj)

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest | None = None, **options: Any
    ) -> ModelMultipleChoiceField | None:
        if request and not _may_all(request):
            options["queryset"] = _own(request).select_related("content_type")
        return super().formfield_for_manytomany(db_field, request, **options)


def _may_all(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def _own(request: HttpRequest) -> QuerySet[Permission]:
    return _held(request.user.pk)


def _held(person: int | None) -> QuerySet[Permission]:
    """Permissions of a person and their groups. ``get_all_permissions`` returns none for an inactive user."""
    return Permission.objects.filter(Q(user=person) | Q(group__user=person)).distinct()


def _groups_within(request: HttpRequest) -> QuerySet[Group]:
    beyond = Permission.objects.exclude(pk__in=_own(request).values("pk"))
    return Group.objects.exclude(permissions__in=beyond)


def _reaches(request: HttpRequest, person: User | None) -> bool:
    """Whether the user may change this person: they could sign in as them, so that person may have no further right."""
    if person is None or _may_all(request):
        return True
    return not person.is_superuser and not _held(person.pk).exclude(pk__in=_own(request).values("pk")).exists()


def _covers(request: HttpRequest, group: Group | None) -> bool:
    return group is None or _may_all(request) or _groups_within(request).filter(pk=group.pk).exists()


# Failed sign-ins in Django admin. A typed name may be a misplaced password: a right to act does not open them.
@admin.register(FailedSignIn)
class FailedSignInAdmin(ReadOnlyAdmin):
    list_display = ("at", "name", "address", "place")
    search_fields = ("name__exact", "address__exact")
    search_help_text = "Whole name, or address."

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("pgqueue.view_failedsignin")


# API tokens in Django admin: view and revoke; manage.py api_token makes them, as a token is shown only once.
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


# Queue scopes in Django admin, read-only; the console's page changes them. A group with scopes cannot be deleted.
@admin.register(QueueScope)
class QueueScopeAdmin(ReadOnlyAdmin):
    list_display = ("group", "pattern", "may_act")
