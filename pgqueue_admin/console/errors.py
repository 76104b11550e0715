"""Error pages: not found, method not allowed, outdated form. Visitors who are not signed in see no details."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import Resolver404, resolve, reverse

from pgqueue_admin.console import responses

STRANGERS = "pgqueue_admin/errors/nothing.html"
SAYS_NOTHING = frozenset({"", "Resolver404", "Http404"})
ELSEWHERE = """This console is below {0}, as PUBLIC_URL says, and the address that was asked for here is not.
Where a proxy stands in front, it has to pass that part of the path on unchanged: docs/how-to/run-behind-a-proxy.md.
"""
OLD_FORM = "Nothing was changed: the page was open from before you last signed in. It is fresh now: press it again."


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if not request.path.startswith(start := reverse("overview")):
        return HttpResponse(ELSEWHERE.format(start), status=404, content_type="text/plain")
    said = str(exception.args[0]) if exception.args and isinstance(exception.args[0], str) else ""
    reason = "No page has this address." if said in SAYS_NOTHING else said
    inside = request.user.is_authenticated
    template = "pgqueue_admin/errors/not_found.html" if inside else STRANGERS
    return render(request, template, {"reason": reason}, status=404)


def only_acts(request: HttpRequest) -> str:
    """The body of a 405: a link to the page that the action belongs to."""
    about = {"above": _above(request.path)}
    template = "pgqueue_admin/errors/only_acts.html" if request.user.is_authenticated else STRANGERS
    return render_to_string(template, about, request)


def _above(path: str) -> str:
    """The nearest existing page above this path."""
    while (path := path.rstrip("/").rpartition("/")[0] + "/") != (start := reverse("overview")):
        try:
            resolve(path)
        except Resolver404:
            continue
        return path
    return start


def old_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer an outdated CSRF token: after a sign-in in another tab, return to the form's page, which has a new token.

    Only if the Referer is a page of ours and the browser keeps cookies: otherwise the redirect could loop for ever.
    """
    page = responses.page_before(request) if settings.CSRF_COOKIE_NAME in request.COOKIES else ""
    if not page:
        return render(request, "403_csrf.html", status=403)
    if request.path != reverse("sign_in"):  # a sign-in that another tab has already done just continues
        responses.refused(request, OLD_FORM)
    return responses.SeeOther(page)
