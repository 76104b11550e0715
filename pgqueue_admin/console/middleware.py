"""Around every page: signed in, in the person's zone, and a plain answer when the console's own database is down."""

import logging
from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import DisallowedHost
from django.db import Error, InterfaceError, OperationalError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseNotFound,
    HttpResponseRedirect,
    QueryDict,
)
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin
from django.utils.encoding import iri_to_uri
from django.utils.http import escape_leading_slashes
from django.utils.log import log_response
from django_htmx.middleware import HtmxDetails

from pgqueue_admin.console import errors, responses, session_age
from pgqueue_admin.dialects import deadline
from pgqueue_admin.dialects.postgresql.connect_options import LOOK_SECONDS
from pgqueue_admin.formatting import times
from pgqueue_admin.models import outage, session_shares

log = logging.getLogger("pgqueue.console")
DOWN = (OperationalError, InterfaceError)
LOOKING = frozenset({"GET", "HEAD", "OPTIONS"})
PROBES = frozenset({"/healthz", "/readyz"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
SIGNED_OUT = "Nothing was done: you had been signed out when you pressed it. Once signed in, press it again."


class HtmxRequest(HttpRequest):
    """As HtmxMiddleware leaves it."""

    htmx: HtmxDetails


class KnownHost(MiddlewareMixin):
    """Asked before all others. A Host that is not ours is refused, in one line of the log.

    Probes come by the address of a pod or a machine: they are answered whatever Host says: no address is made of it.
    Metrics are asked for on this machine, by its own name for itself; any other name could be a web page's (rebinding).
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path_info in PROBES or _asks_metrics_here(request):
            request.get_host = request._get_raw_host  # type: ignore[attr-defined, method-assign]
            return None
        try:
            request.get_host()
        except DisallowedHost:
            return _not_ours(request)
        return None


def _asks_metrics_here(request: HttpRequest) -> bool:
    host: str = request._get_raw_host()  # type: ignore[attr-defined]
    return request.path_info == "/metrics" and split_domain_port(host)[0] in LOOPBACK


def _not_ours(request: HttpRequest) -> HttpResponse:
    said = "This console does not answer to that name. Names that it answers to are in ALLOWED_HOSTS.\n"
    response = HttpResponseBadRequest(said, content_type="text/plain")
    about = "Refused: Host %s is not in ALLOWED_HOSTS: %s"
    host = request._get_raw_host()  # type: ignore[attr-defined]
    log_response(about, host, request.path, response=response, request=request)
    return response


class RefuseNul(MiddlewareMixin):
    """No column and no name holds a NUL, and asking for one makes an error of it: an address with one leads nowhere."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if "\0" in request.path_info:
            said = "There is no such page: its address holds a NUL character.\n"
            return HttpResponseNotFound(said, content_type="text/plain")
        if _holds_nul(request.GET):
            address = request.get_full_path().replace("%00", "")
            return HttpResponseRedirect(escape_leading_slashes(address))  # two would name another host
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
            answer = super().process_view(request, view_func, view_args, view_kwargs)
            if answer is None:
                session_age.prolong(request)
            return answer
        except DOWN as error:  # the session lives in the console's database
            return unavailable(request, error)

    def handle_no_permission(  # type: ignore[override]
        self, request: HtmxRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """An act was not done, and only a page can be come back to. A part of a page is no place for a sign-in page."""
        if request.htmx or request.headers.get("Accept") == "text/event-stream":
            return HttpResponse("You are signed out.\n", status=401, content_type="text/plain")
        if request.method in LOOKING:
            return super().handle_no_permission(request, view_func)
        responses.refused(request, SIGNED_OUT)
        return redirect_to_login(responses.pressed_on(request))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        refused = isinstance(exception, Error) and outage.takes_no_writes(exception)
        is_down = isinstance(exception, DOWN) or refused
        return unavailable(request, exception) if is_down else None


class LooksLimited(MiddlewareMixin):
    """All that a page looks at in the queues has one time limit, and one person never has all sessions for it."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        known = getattr(request, "_cached_user", None)  # whom SignInRequired let in; a probe is nobody
        session_shares.person.set(known.pk if known and known.is_authenticated else None)
        if request.method in LOOKING:
            deadline.begin(LOOK_SECONDS)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        session_shares.person.set(None)
        deadline.end()
        return response


class PersonZone(MiddlewareMixin):
    """Times are shown in the browser's zone, which its script leaves in a cookie, or in UTC on ``z``."""

    def process_request(self, request: HttpRequest) -> None:
        wanted = "UTC" if request.COOKIES.get("utc") == "on" else request.COOKIES.get("zone", "")
        timezone.activate(times.zone(wanted.replace("%2F", "/")))


class PrivateResponses(MiddlewareMixin):
    """No proxy and no shared cache keeps what somebody was shown, and nobody is shown it again unasked.

    Not ``no-store``: with that browsers forget what was ticked and typed when Back returns to a list.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class ActionOutcome(MiddlewareMixin):
    """An address that only takes acts, opened by hand or from the history: Django's answer to that is a blank page."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if response.status_code == 405 and request.method == "GET":
            response.content = errors.only_acts(request).encode()
        return response


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """503 without a query: the page tries again by itself, open pages keep their figures.

    An act is never tried again by itself: the page where it was pressed is, to look whether it was done.
    """
    does = outage.describe(error)
    log.warning("The console's database %s: %s", does, error)
    acted, said = request.method not in LOOKING, _told(request, error).splitlines()
    again = responses.pressed_on(request) if acted else ""
    about = {"does": does, "detail": said[0] if said else "", "acted": acted, "again": again}
    page = render_to_string("pgqueue_admin/unavailable.html", about)
    refresh = f"5; url={iri_to_uri(again)}" if acted else "5"
    return HttpResponse(page, status=503, headers={"Retry-After": "5", "Refresh": refresh})


def _told(request: HttpRequest, error: Exception) -> str:
    """The driver's words name hosts, ports and roles: for the log, and for whoever had been let in before it failed."""
    known = getattr(request, "_cached_user", None)  # asking now would ask the database that is away
    return str(error).strip() if known and known.is_authenticated else ""
