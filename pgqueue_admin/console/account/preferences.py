"""What a person chose for their browser: theme, zone, single keys. Cookies, so that the first byte is right."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import navigation
from pgqueue_admin.console.responses import back

CHOICES = {"theme": ("system", "light", "dark"), "utc": ("on", "off"), "keys": ("on", "off")}
YEAR = 365 * 86_400


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    response = back(request)
    for name, allowed in CHOICES.items():
        if request.POST.get(name) in allowed:
            secure, start = request.is_secure(), reverse("overview")
            response.set_cookie(name, request.POST[name], max_age=YEAR, path=start, samesite="Lax", secure=secure)
    return response


@require_safe
def keys(request: HttpRequest) -> HttpResponse:
    """The list of shortcuts, fetched when it is first opened: without scripts there are no keys to explain."""
    return render(request, "pgqueue_admin/frame/keys.html", {"goes": navigation.keys()})


urlpatterns = [path("me/", choose, name="person"), path("me/keys/", keys, name="keys")]
