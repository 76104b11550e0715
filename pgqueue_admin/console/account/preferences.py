"""``/me/``: a person's rights and preferences. Preferences are cookies, so that the first byte is right."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from pgqueue_admin.console import navigation
from pgqueue_admin.console.account import rights
from pgqueue_admin.console.overview import activity
from pgqueue_admin.console.responses import back
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import queue_access

CHOICES = {"theme": ("system", "light", "dark"), "utc": ("on", "off"), "keys": ("on", "off")}
YEAR = 365 * 86_400
ACTS = 10


@require_http_methods(["GET", "HEAD", "POST"])
def person(request: HttpRequest) -> HttpResponse:
    return choose(request) if request.method == "POST" else page(request)


def page(request: HttpRequest) -> HttpResponse:
    name = request.user.get_username()
    entries = AuditEntry.objects.filter(who=name)[:ACTS]
    context = {
        "rights": rights.rows(request.user),
        "scopes": queue_access.scopes_of(request.user) if queue_access.of(request.user) else [],
        "acts": [activity.of_entry(entry) for entry in entries],
        "search": 'who:"{}"'.format(name.replace('"', "")),
        "goes": navigation.keys(),
    }
    return render(request, "pgqueue_admin/account/page.html", context)


def choose(request: HttpRequest) -> HttpResponse:
    response = back(request)
    for name, allowed in CHOICES.items():
        if request.POST.get(name) in allowed:
            secure, start = request.is_secure(), reverse("overview")
            response.set_cookie(name, request.POST[name], max_age=YEAR, path=start, samesite="Lax", secure=secure)
    return response


@require_safe
def keys(request: HttpRequest) -> HttpResponse:
    """The list of shortcuts, loaded when first opened: without scripts there are no shortcuts."""
    return render(request, "pgqueue_admin/frame/keys.html", {"goes": navigation.keys()})


urlpatterns = [path("me/", person, name="person"), path("me/keys/", keys, name="keys")]
