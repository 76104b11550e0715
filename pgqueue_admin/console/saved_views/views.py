"""Views: all that a person may open; acts that save, rename and remove one or make it the default; and opening one."""

from typing import Any
from urllib.parse import parse_qsl

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pgqueue_admin.console import permissions, responses
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.saved_views import links
from pgqueue_admin.models import SavedView
from pgqueue_admin.models.saved_view import LONGEST_NAME
from pgqueue_admin.services import saved_views
from pgqueue_admin.services.saved_views import ViewRefused

WORDS = {"archive": "Archive", "queues": "Queues", "failures": "Failures", "audit": "Audit"}


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """``of`` and ``query``: the page and the query to save, as the page's link passes them."""
    if request.method == "POST":
        return _save(request)
    of, query = request.GET.get("of", ""), request.GET.get("query", "")
    is_known = of in saved_views.KEPT
    found = links.visible(request.user)
    about: dict[str, Any] = {
        "of": of if is_known else "",
        "word": WORDS.get(of, ""),
        "query": saved_views.cleaned(of, query) if is_known else "",
        "said": _said(saved_views.cleaned(of, query)) if is_known else [],
        "views": [(view, _said(view.query), saved_views.refusal(request.user, view)) for view in found],
        "opens": saved_views.defaults_of(request.user),
        "words": WORDS,
        "share_refusal": permissions.refusal_on_page(request.user, "share"),
        "longest": LONGEST_NAME,
    }
    return render(request, "pgqueue_admin/saved_views/page.html", about)


def _save(request: HttpRequest) -> HttpResponse:
    given = request.POST
    of, query = given.get("of", ""), given.get("query", "")
    try:
        view = saved_views.save(
            request.user, of, query, given.get("name", ""), shared=given.get("shared") == "yes", origin="console"
        )
    except ViewRefused as refused:
        responses.refused(request, str(refused))
        return responses.back(request, "views")
    whose = "Everybody sees it." if view.is_shared else "Only you see it."
    if given.get("opens") == "yes":
        saved_views.open_with(request.user, view)
        whose += f" {WORDS[view.page]} opens with it for you."
    responses.done(request, f"Saved as “{view.name}”. {whose}", Way("All views", reverse("views")))
    return responses.SeeOther(address(view))


@require_safe
def opened(request: HttpRequest, slug: str) -> HttpResponse:
    return HttpResponseRedirect(address(_of(request, slug)))


@require_POST
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    view = _of(request, slug)
    before = view.name
    try:
        saved_views.rename(request.user, view, request.POST.get("name", ""), "console")
        responses.done(request, f"“{before}” is “{view.name}” now. Its address is the same.")
    except ViewRefused as refused:
        responses.refused(request, str(refused))
    return responses.back(request, "views")


@require_POST
def remove(request: HttpRequest, slug: str) -> HttpResponse:
    view = _of(request, slug)
    fields = {"of": view.page, "query": view.query, "name": view.name, "shared": "yes" if view.is_shared else ""}
    try:
        saved_views.remove(request.user, view, "console")
        responses.done(request, f"Removed “{view.name}”.", Way("Undo", reverse("views"), fields))
    except ViewRefused as refused:
        responses.refused(request, str(refused))
    return responses.back(request, "views")


@require_POST
def default(request: HttpRequest, slug: str) -> HttpResponse:
    """Open this person's list with this view; ``plain``: with none."""
    view = _of(request, slug)
    word = WORDS.get(view.page, view.page)
    if request.POST.get("plain") == "yes":
        saved_views.open_without(request.user, view.page)
        responses.done(request, f"{word} opens for you as it does for everybody.")
    else:
        saved_views.open_with(request.user, view)
        responses.done(request, f"{word} opens for you with “{view.name}”. For others nothing changes.")
    return responses.back(request, "views")


def address(view: SavedView) -> str:
    """The address of a page of ours, whatever the row holds: a known page, and names that it reads."""
    if view.page not in WORDS:
        raise Http404("This view is of a page that this version does not have.")
    query = saved_views.cleaned(view.page, view.query)
    return f"{reverse(view.page)}?{query}" if query else reverse(view.page)


def _of(request: HttpRequest, slug: str) -> SavedView:
    view = links.visible(request.user).filter(slug=slug).first()
    if view is None:
        raise Http404("There is no such view, or it is somebody else's own. Everybody sees those that are shared.")
    return view


def _said(query: str) -> list[tuple[str, str]]:
    """Names and values, as a person reads them."""
    return parse_qsl(query, keep_blank_values=True)


urlpatterns = [
    path("views/", page, name="views"),
    path("views/<slug:slug>/", opened, name="view"),
    path("views/<slug:slug>/rename/", rename, name="view_rename"),
    path("views/<slug:slug>/remove/", remove, name="view_remove"),
    path("views/<slug:slug>/default/", default, name="view_default"),
]
