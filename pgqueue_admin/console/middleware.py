"""Middleware of every page: sign-in, time zone, and a plain answer while the console's database is down."""

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
    """A request after HtmxMiddleware."""

    htmx: HtmxDetails


class KnownHost(MiddlewareMixin):
    """Runs before all other middleware. Refuses a Host that is not ours, with one line in the log.

    Probes address a pod or a machine by its IP: they are answered for any Host, since no URL is built from it. Metrics
    are also answered on loopback names: any other name could come from a web page (DNS rebinding).
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
    """A NUL in a path gets 404 and is removed elsewhere: no column or name holds one, and queries with one fail."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if "\0" in request.path_info:
            said = "There is no such page: its address holds a NUL character.\n"
            return HttpResponseNotFound(said, content_type="text/plain")
        if _holds_nul(request.GET):
            address = request.get_full_path().replace("%00", "")
            return HttpResponseRedirect(escape_leading_slashes(address))  # two leading slashes would name another host
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
            return None  # checked first, without the session: a probe must not need the database
        try:
            answer = super().process_view(request, view_func, view_args, view_kwargs)
            if answer is None:
                session_age.prolong(request)
            return answer
        except DOWN as error:  # sessions are stored in the console's database
            return unavailable(request, error)

    def handle_no_permission(  # type: ignore[override]
        self, request: HtmxRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """Refuse an action with a message and return to its page after sign-in.

        A page fragment gets 401, not a sign-in page.
        """
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
    """Limits the time of all queue reads of one page, and the share of read sessions that one person may use."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        known = getattr(request, "_cached_user", None)  # set by SignInRequired; a probe has no user
        session_shares.person.set(known.pk if known and known.is_authenticated else None)
        if request.method in LOOKING:
            deadline.begin(LOOK_SECONDS)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        session_shares.person.set(None)
        deadline.end()
        return response


class PersonZone(MiddlewareMixin):
    """Activates the browser's time zone, which its script stores in a cookie, or UTC if the key ``z`` chose it."""

    def process_request(self, request: HttpRequest) -> None:
        wanted = "UTC" if request.COOKIES.get("utc") == "on" else request.COOKIES.get("zone", "")
        timezone.activate(times.zone(wanted.replace("%2F", "/")))


class PrivateResponses(MiddlewareMixin):
    """No proxy or shared cache stores a response, and a browser revalidates it before showing it again.

    Not ``no-store``: with it, browsers forget ticked boxes and typed text when Back returns to a list.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class ActionOutcome(MiddlewareMixin):
    """Gives a page to the 405 of an action's address, opened by hand or from the history: Django's is blank."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        if response.status_code == 405 and request.method == "GET":
            response.content = errors.only_acts(request).encode()
        return response


def unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    """Answer 503 without a query: the page reloads itself, open pages keep their figures.

    An action is never repeated automatically: instead the page with its button reloads, to show whether it was done.
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
    """The driver's message names hosts, ports and roles: only for the log and persons already authenticated."""
    known = getattr(request, "_cached_user", None)  # loading the user now would query the database that is down
    return str(error).strip() if known and known.is_authenticated else ""
