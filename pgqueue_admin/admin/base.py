"""Base of all our admin pages: read-only, and counts stop at the cap."""

from functools import cached_property
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse

from pgqueue_admin.admin.list_cells import marked
from pgqueue_admin.services.permissions import PERMISSIONS

_ACTS = frozenset(PERMISSIONS.values()) - {PERMISSIONS["read"], PERMISSIONS["reveal"]}  # reading alone opens no list


class CappedPaginator(Paginator):
    """Counts up to the cap, never a whole table; filters find what lies beyond."""

    object_list: QuerySet[Any]

    @cached_property
    def count(self) -> int:
        return self.object_list.order_by()[: settings.PGQUEUE["CAP"]].count()


class ReadOnlyAdmin(admin.ModelAdmin):
    """Staff with the view permission or any right to act may view; nobody may add, change or delete."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # they count the whole table, once per choice
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    actions_selection_counter = True
    change_form_template = "pgqueue_admin/admin/object.html"
    console_page = ""  # URL name of the object's console page

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow only lookups that a filter offers: Django allows any pattern on any column to all who may view.

        Refuse as for an invalid value: that shows the unfiltered list, not the blank page of a disallowed lookup.
        """
        names = {each if isinstance(each, str) else getattr(each, "parameter_name", "") for each in self.list_filter}
        name, _, how = lookup.partition("__")
        if name not in names or how not in {"", "exact", "isnull"}:
            raise IncorrectLookupParameters(lookup)
        return True

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A right to act includes seeing what was acted on, and by whom."""
        person = request.user
        return super().has_view_permission(request, obj) or any(map(person.has_perm, _ACTS))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        return marked(super().changelist_view(request, extra_context))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        shown = {**(extra_context or {}), "console_url": self.console_url(object_id)}
        return marked(super().change_view(request, object_id, form_url, shown))

    def history_view(self, request: HttpRequest, object_id: str, *more: Any, **options: Any) -> HttpResponse:
        return marked(super().history_view(request, object_id, *more, **options))

    def console_url(self, object_id: str) -> str:
        try:
            return reverse(self.console_page, args=[object_id]) if self.console_page else ""
        except NoReverseMatch:
            return ""
