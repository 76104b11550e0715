"""What is shown where there is no page; strangers learn nothing but that."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

SAYS_NOTHING = frozenset({"", "Resolver404", "Http404"})


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    said = str(exception.args[0]) if exception.args and isinstance(exception.args[0], str) else ""
    reason = "No page has this address." if said in SAYS_NOTHING else said
    inside = request.user.is_authenticated
    template = "pgqueue_admin/errors/not_found.html" if inside else "pgqueue_admin/errors/nothing.html"
    return render(request, template, {"reason": reason}, status=404)
