"""Is each service keeping up? The list of endpoints, and telling of one that runs elsewhere."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import access, answers, service, verdicts
from pgqueue_admin.console.answers import Way
from pgqueue_admin.console.forms.declaration import Declaration
from pgqueue_admin.records import endpoints, standings


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _declare(request)
    return _page(request, Declaration())


def _page(request: HttpRequest, form: Declaration, status: int = 200) -> HttpResponse:
    found = service.services()
    verdict = service.verdict(standings.of(each.staff for each in found if each.endpoint.ours))
    about = {"services": found, "form": form, "refusal": access.may(request.user, "set"), "verdict": verdict}
    about |= {"verdict_line": verdicts.line(verdict)}
    return render(request, "pgqueue_admin/endpoints/page.html", about, status=status)


def _declare(request: HttpRequest) -> HttpResponse:
    form = Declaration(request.POST)
    if refusal := access.may(request.user, "set"):
        answers.refused(request, f"Nothing was declared: {refusal}.")
    elif not form.is_valid():
        return _page(request, form, status=422)
    else:
        _tell(request, form)
    return answers.SeeOther(reverse("endpoints"))


def _tell(request: HttpRequest, form: Declaration) -> None:
    given = form.cleaned_data
    try:
        peek_delay = {"peek_delay_ms": given["peek_delay_ms"]}
        endpoints.declare(given["name"], given["address"], peek_delay, request.user, "console")
    except endpoints.ActRefused as error:
        return answers.refused(request, str(error))
    name = given["name"]
    ways = Way("See it", reverse("endpoint", args=[name])), Way("Undo", reverse("endpoint_withdraw", args=[name]), {})
    answers.done(request, f"{name} is declared. Its peek delay is used for warnings only.", *ways)


urlpatterns = [path("endpoints/", page, name="endpoints")]
