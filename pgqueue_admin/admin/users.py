"""People and groups in Django admin: nobody gives, or takes over, a right that they do not have themselves.

Django's own lets whoever may change users make a superuser of anybody, or set a superuser's password.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import ManyToManyField, Q, QuerySet
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest

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
    """Given to a person or to a group of theirs. ``get_all_permissions`` says none of one who may not sign in now."""
    return Permission.objects.filter(Q(user=person) | Q(group__user=person)).distinct()


def _groups_within(request: HttpRequest) -> QuerySet[Group]:
    beyond = Permission.objects.exclude(pk__in=_own(request).values("pk"))
    return Group.objects.exclude(permissions__in=beyond)


def _reaches(request: HttpRequest, person: User | None) -> bool:
    """Whoever changes a person could sign in as them: so only one who has no right that the changer has not."""
    if person is None or _may_all(request):
        return True
    return not person.is_superuser and not _held(person.pk).exclude(pk__in=_own(request).values("pk")).exists()


def _covers(request: HttpRequest, group: Group | None) -> bool:
    return group is None or _may_all(request) or _groups_within(request).filter(pk=group.pk).exists()
