"""Saved views of a page, for its filter line, and the link that saves its present address."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.models import SavedView
from pgqueue_admin.services import content_access, saved_views
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.permissions import name_of

View = Callable[..., HttpResponse]
_SEARCHING = ("archive", "failures")  # pages whose searches may read message content
PLAIN = "view=none"  # no page reads it: it only keeps the address from being empty


class ViewLinks(NamedTuple):
    """``views``: each with whether it is the present one. ``save``: where the page is saved. ``plain``: the page as it
    is for everybody; empty unless this person's opens with a view.
    """

    views: list[tuple[SavedView, bool]]
    save: str
    plain: str


def visible(person: Any) -> QuerySet[SavedView]:
    """Visible views, except those of others that search content which this person may not: they would reveal it."""
    found = saved_views.visible(person)
    return found.exclude(pk__in=_hidden(person, found.filter(page__in=_SEARCHING)))


def _hidden(person: Any, views: Iterable[SavedView]) -> list[int]:
    others = [view for view in views if view.page in _SEARCHING and view.owner != name_of(person)]
    access = content_access.of(person) if others else None
    return [view.pk for view in others if access and access.withheld and _is_hidden(view, access)]


def _is_hidden(view: SavedView, access: ContentAccess) -> bool:
    return any(shown_search.of(text, access).is_hidden for name, text in parse_qsl(view.query) if name == "q")


def of(request: HttpRequest, page: str) -> ViewLinks:
    here = _here(request, page)
    found = [(view, view.query == here) for view in _visible(request, page)]
    opens = saved_views.defaults_of(request.user) if found else set()
    plain = f"{reverse(page)}?{PLAIN}" if any(view.pk in opens for view, _ in found) else ""
    return ViewLinks(found, _saving(page, here), plain)


def opens_with_default(page: str) -> Callable[[View], View]:
    """Decorate the view function of a list: without a query, it opens this person's default view."""

    def opening(view: View) -> View:
        @wraps(view)
        def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            theirs = {each.pk for each in _visible(request, page)} if not request.META.get("QUERY_STRING") else set()
            default = saved_views.default_of(request.user, page) if theirs else None
            query = saved_views.cleaned(page, default.query) if default and default.pk in theirs else ""
            return HttpResponseRedirect(f"{reverse(page)}?{query}") if query else view(request, *args, **kwargs)

        return opened

    return opening


def _visible(request: HttpRequest, page: str) -> list[SavedView]:
    """Read once a request: most people have no view, and so no default."""
    known: dict[str, list[SavedView]] = request.__dict__.setdefault("saved_views", {})
    if page not in known:
        found = list(saved_views.visible(request.user).filter(page=page))
        hidden = _hidden(request.user, found)
        known[page] = [view for view in found if view.pk not in hidden]
    return known[page]


def saving(request: HttpRequest, page: str) -> str:
    """For a page that has no room for its views: the link that saves one."""
    return _saving(page, _here(request, page))


def _here(request: HttpRequest, page: str) -> str:
    return saved_views.cleaned(page, request.META.get("QUERY_STRING", ""))


def _saving(page: str, here: str) -> str:
    return f"{reverse('views')}?{urlencode({'of': page, 'query': here})}"
