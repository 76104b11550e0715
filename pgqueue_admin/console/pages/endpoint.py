"""One endpoint: its processes, its settings with what they risk, and every change with the way back (C1, C5)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import access, answers, service, settings_table, settings_words
from pgqueue_admin.console.existing import existing
from pgqueue_admin.console.forms.endpoint import EndpointSettings
from pgqueue_admin.console.forms.endpoint_risks import Risk, risks, seen
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.records import endpoints, fatal, processes
from pgqueue_admin.records.models import AuditEntry, Endpoint
from pgqueue_admin.wording.figures import counted

HISTORY = 20
COUNTS = (
    ("received", "Received", "by running processes"),
    ("failed", "Failed", "attempts"),
)


@require_http_methods(["GET", "HEAD"])
def page(request: HttpRequest, name: str) -> HttpResponse:
    endpoint = existing(Endpoint, f"No endpoint {name} is declared here.", name=name)
    return _page(request, endpoint, EndpointSettings(endpoint) if "edit" in request.GET else None)


@require_http_methods(["POST"])
def save(request: HttpRequest, name: str) -> HttpResponse:
    """Values that risk messages are shown with what they risk first, and saved when sent again."""
    endpoint = existing(Endpoint, f"No endpoint {name} is declared here.", name=name)
    if refusal := access.may(request.user, "set"):
        answers.refused(request, f"Nothing was changed: {refusal}.")
        return answers.SeeOther(_place(name))
    form = EndpointSettings(endpoint, request.POST)
    if not form.is_valid():
        return _page(request, endpoint, form, status=422)
    found = risks(service.service(endpoint), form.wanted)
    if found and request.POST.get("seen") != seen(found):
        return _page(request, endpoint, form, found, status=422)
    return _save(request, endpoint, form)


def _save(request: HttpRequest, endpoint: Endpoint, form: EndpointSettings) -> HttpResponse:
    reason, version = answers.reason(request), request.POST.get("version", "")
    try:
        read = whole(version)
        endpoints.save_settings(endpoint.name, form.changes, request.user, "console", version=read, reason=reason)
    except endpoints.FaultySettings as error:
        for field, fault in error.faults.items():
            form.add_error(field if field in form.fields else None, fault)
        return _page(request, endpoint, form, status=422)
    except endpoints.ActRefused as error:
        answers.refused(request, str(error))
    else:
        answers.done(request, _saved(endpoint, form))
    return answers.back(request, _place(endpoint.name))


def _saved(endpoint: Endpoint, form: EndpointSettings) -> str:
    if not form.changes:
        return f"Nothing was different. {endpoint.name} stays as it is."
    said = settings_words.change({name: getattr(endpoint, name) for name in form.changes}, form.changes)
    if not endpoint.ours:
        return f"{endpoint.name} is declared with {said}. It runs elsewhere: its own code decides."
    have = service.service(endpoint).staff.have
    return f"{endpoint.name}: {said}. {counted(have, 'process takes', 'processes take')} it within a second."


def _page(
    request: HttpRequest,
    endpoint: Endpoint,
    form: EndpointSettings | None,
    found: list[Risk] | None = None,
    status: int = 200,
) -> HttpResponse:
    last = endpoints.last_changes(endpoint.name)
    about = {
        "service": service.service(endpoint),
        "taken": processes.taken(endpoint),
        "counts": COUNTS,
        "suspects": fatal.suspects(endpoint.name),
        "endpoint": endpoint,
        "settings": settings_table.groups(endpoint, last),
        "history": [(entry, _undo_path(endpoint, entry, last)) for entry in endpoints.history(endpoint.name)[:HISTORY]],
        "form": form,
        "risks": found,
        "seen": seen(found or []),
        "back_to": answers.came_from(request),  # the form may have stood on the queue's page
        "refusal": access.may(request.user, "set"),
        "run_refusal": access.may(request.user, "run"),
    }
    return render(request, "pgqueue_admin/endpoints/endpoint.html", about, status=status)


def _undo_path(endpoint: Endpoint, entry: AuditEntry, last: dict[str, AuditEntry]) -> str:
    """Only what still stands can be taken back, and only settings: a start is taken back by a stop."""
    fields = set(entry.after or {})
    stands = bool(fields) and endpoints.is_of_settings(entry) and all(last.get(field) == entry for field in fields)
    return reverse("endpoint_undo", args=[endpoint.name, entry.pk]) if stands else ""


def _place(name: str) -> str:
    return reverse("endpoint", args=[name])


urlpatterns = [
    path("endpoints/<name:name>/", page, name="endpoint"),
    path("endpoints/<name:name>/settings/", save, name="endpoint_settings"),
]
