"""Around every page: signed in, in the person's zone, and a plain answer when the console's own database is down."""

import zoneinfo
from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotFound, HttpResponseRedirect, QueryDict
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

DOWN = (OperationalError, InterfaceError)


class NoNul(MiddlewareMixin):
    """No column and no name holds a NUL, and asking for one makes an error of it: an address with one leads nowhere."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if "\0" in request.path_info:
            said = "There is no such page: its address holds a NUL character.\n"
            return HttpResponseNotFound(said, content_type="text/plain")
        if _holds_nul(request.GET):
            return HttpResponseRedirect(request.get_full_path().replace("%00", ""))
        if request.method == "POST" and _holds_nul(request.POST):
            request.POST = _without_nul(request.POST)  # type: ignore[assignment]
        request.COOKIES = {name: value for name, value in request.COOKIES.items() if "\0" not in value}
        return None


def _holds_nul(given: QueryDict) -> bool:
    return any("\0" in text for name, values in given.lists() for text in (name, *values))


def _without_nul(given: QueryDict) -> QueryDict:
    clean = QueryDict(mutable=True)
    for name, values in given.lists():
        clean.setlist(name.replace("\0", ""), [value.replace("\0", "") for value in values])
    return clean


class SignInRequired(LoginRequiredMiddleware):
    """Every page needs a sign-in unless it is marked ``login_not_required``."""

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., Any],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        if not getattr(view_func, "login_required", True):
            return None  # asked first, and not of the session: a probe must not need the database
        try:
            return super().process_view(request, view_func, view_args, view_kwargs)
        except DOWN as error:  # the session lives in the console's database
            return unavailable(error)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return unavailable(exception) if isinstance(exception, DOWN) else None


class Zone(MiddlewareMixin):
    """Times are shown in the browser's zone, which its script leaves in a cookie, or in UTC on ``z``."""

    def process_request(self, request: HttpRequest) -> None:
        wanted = "UTC" if request.COOKIES.get("utc") == "on" else request.COOKIES.get("zone", "")
        try:
            timezone.activate(zoneinfo.ZoneInfo(wanted.replace("%2F", "/")))
        except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
            timezone.deactivate()


def unavailable(error: Exception) -> HttpResponse:
    """503 without a query: the page tries again by itself, open pages keep their figures."""
    said = str(error).strip().splitlines()
    page = render_to_string("pgqueue_admin/unavailable.html", {"detail": said[0] if said else ""})
    return HttpResponse(page, status=503, headers={"Retry-After": "5", "Refresh": "5"})
