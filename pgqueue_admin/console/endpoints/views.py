"""Is each service keeping up? The list of endpoints, and the form that declares one that runs elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import permissions, responses, verdicts
from pgqueue_admin.console.endpoints import health
from pgqueue_admin.console.endpoints.form import ExternalEndpointForm
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.scopes.addresses import ONLY_OF_ALL
from pgqueue_admin.dialects import visible_queues
from pgqueue_admin.models import endpoint_standings
from pgqueue_admin.services import endpoint_change, endpoints
from pgqueue_admin.services.permissions import Refusal


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _declare(request)
    return _page(request, ExternalEndpointForm())


def _page(request: HttpRequest, form: ExternalEndpointForm, status: int = 200) -> HttpResponse:
    found = health.health_of_all()
    verdict = health.verdict(endpoint_standings.of(each.staff for each in found if each.endpoint.ours))
    about = {
        "services": found,
        "form": form,
        "refusal": _refusal(request),
        "verdict": verdict,
    }
    about |= {"verdict_line": verdicts.line(verdict)}
    return render(request, "pgqueue_admin/endpoints/page.html", about, status=status)


def _refusal(request: HttpRequest) -> Refusal | str | None:
    """A person with scopes declares no endpoint: the typed queue could be any."""
    return ONLY_OF_ALL if visible_queues.current() else permissions.refusal_on_page(request.user, "set")


def _declare(request: HttpRequest) -> HttpResponse:
    form = ExternalEndpointForm(request.POST)
    if refusal := _refusal(request):
        responses.refused(request, f"Nothing was declared: {refusal}.")
    elif not form.is_valid():
        return _page(request, form, status=422)
    else:
        _tell(request, form)
    return responses.SeeOther(reverse("endpoints"))


def _tell(request: HttpRequest, form: ExternalEndpointForm) -> None:
    given = form.cleaned_data
    try:
        peek_delay = {"peek_delay_ms": given["peek_delay_ms"]}
        endpoints.declare(given["name"], given["address"], peek_delay, request.user, "console")
    except endpoint_change.ActRefused as error:
        return responses.refused(request, str(error))
    name = given["name"]
    ways = Way("See it", reverse("endpoint", args=[name])), Way("Undo", reverse("endpoint_withdraw", args=[name]), {})
    responses.done(request, f"{name} is declared. Its peek delay is used for warnings only.", *ways)


urlpatterns = [path("endpoints/", page, name="endpoints")]
