"""One endpoint's page: its processes, its settings and their risks, and its changes with undo (C1, C5)."""

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import permissions, responses, url_converters
from pgqueue_admin.console.endpoints import health
from pgqueue_admin.console.endpoints.actions import settings_changed
from pgqueue_admin.console.endpoints.form import EndpointSettingsForm
from pgqueue_admin.console.endpoints.setting_effects import Effect
from pgqueue_admin.console.endpoints.setting_warnings import SettingWarning, risks, seen
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.queues.detail import views as queue_page
from pgqueue_admin.console.scopes.addresses import ONLY_OF_ALL
from pgqueue_admin.console.settings import endpoint_rows
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import AuditEntry, Endpoint, Queue, crashing_messages, processes, settings_words
from pgqueue_admin.services import endpoint_change, endpoints

HISTORY = 20
COUNTS = (
    ("received", "Received", "by running processes"),
    ("failed", "Failed", "attempts"),
)


@require_http_methods(["GET", "HEAD"])
def page(request: HttpRequest, name: str) -> HttpResponse:
    endpoint = existing(Endpoint, f"No endpoint {name} is declared here.", name=name)
    return _page(request, endpoint, EndpointSettingsForm(endpoint) if "edit" in request.GET else None)


@require_http_methods(["POST"])
def effect(request: HttpRequest, name: str) -> HttpResponse:
    """Preview the form's effect as it is typed; nothing is saved."""
    endpoint = existing(Endpoint, f"No endpoint {name} is declared here.", name=name)
    typed = Effect(health.health_of(endpoint), EndpointSettingsForm(endpoint, request.POST))
    return render(request, "pgqueue_admin/endpoints/effect.html", {"effect": typed, "endpoint": endpoint})


@require_http_methods(["POST"])
def save(request: HttpRequest, name: str) -> HttpResponse:
    """Save settings. Values with a risk are first shown with that risk, and saved when submitted again."""
    endpoint = existing(Endpoint, f"No endpoint {name} is declared here.", name=name)
    if refusal := permissions.refusal_on_page(request.user, "set"):
        responses.refused(request, f"Nothing was changed: {refusal}.")
        return responses.SeeOther(_place(name))
    form = EndpointSettingsForm(endpoint, request.POST)
    if not form.is_valid():
        return _again(request, endpoint, form, status=422)
    if "look" in request.POST:
        return _again(request, endpoint, form)
    found = risks(health.health_of(endpoint), form.wanted)
    if found and request.POST.get("seen") != seen(found):
        return _again(request, endpoint, form, found, status=422)
    return _save(request, endpoint, form)


def _save(request: HttpRequest, endpoint: Endpoint, form: EndpointSettingsForm) -> HttpResponse:
    reason, version = responses.reason(request), request.POST.get("version", "")
    try:
        read = parse_int(version)
        endpoints.save_settings(endpoint.name, form.changes, request.user, "console", version=read, reason=reason)
    except endpoint_change.FaultySettings as error:
        for field, fault in error.faults.items():
            form.add_error(field if field in form.fields else None, fault)
        return _again(request, endpoint, form, status=422)
    except endpoint_change.ActRefused as error:
        responses.refused(request, str(error))
    else:
        responses.done(request, _saved(endpoint, form), *(settings_changed(endpoint.name) if form.changes else ()))
    return responses.back(request, _place(endpoint.name))


def _saved(endpoint: Endpoint, form: EndpointSettingsForm) -> str:
    if not form.changes:
        return f"No change. {endpoint.name} stays as it is."
    said = settings_words.change({name: getattr(endpoint, name) for name in form.changes}, form.changes)
    if not endpoint.ours:
        return f"{endpoint.name} is declared with {said}. It runs elsewhere: its own code decides."
    have = health.health_of(endpoint).staff.have
    return f"{endpoint.name}: {said}. {pluralize(have, 'process takes', 'processes take')} it within a second."


def _again(
    request: HttpRequest,
    endpoint: Endpoint,
    form: EndpointSettingsForm,
    found: list[SettingWarning] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Show the form again on its page: the endpoint's, or its queue's."""
    place = urlsplit(responses.came_from(request)).path
    queue = Queue.objects.select_related("latest").filter(schema=endpoint.schema, table=endpoint.table).first()
    if queue and place == url_converters.queue(Address(queue.schema, queue.table)):
        return queue_page.show(request, queue, form, {"risks": found, "seen": seen(found or [])}, status)
    return _page(request, endpoint, form, found, status)


def _page(
    request: HttpRequest,
    endpoint: Endpoint,
    form: EndpointSettingsForm | None,
    found: list[SettingWarning] | None = None,
    status: int = 200,
) -> HttpResponse:
    last = endpoints.last_changes(endpoint.name)
    refusal = permissions.refusal_on_page(request.user, "set")
    about = {
        "service": health.health_of(endpoint),
        "taken": processes.taken(endpoint),
        "counts": COUNTS,
        "suspects": crashing_messages.suspects(endpoint.name),
        "endpoint": endpoint,
        "settings": endpoint_rows.groups(endpoint, last),
        "history": [
            (entry, _undo_path(endpoint, entry, last)) for entry in endpoint_change.history(endpoint.name)[:HISTORY]
        ],
        "form": form,
        "effect": Effect(health.health_of(endpoint), form) if form else None,
        "risks": found,
        "seen": seen(found or []),
        "back_to": responses.came_from(request),
        "refusal": refusal,
        "run_refusal": permissions.refusal_on_page(request.user, "run"),
        "withdraw_refusal": ONLY_OF_ALL if visible_queues.current() else refusal,
    }
    return render(request, "pgqueue_admin/endpoints/endpoint.html", about, status=status)


def _undo_path(endpoint: Endpoint, entry: AuditEntry, last: dict[str, AuditEntry]) -> str:
    """Only settings that are still in effect can be undone: a start is undone by a stop."""
    fields = set(entry.after or {})
    stands = bool(fields) and endpoints.is_of_settings(entry) and all(last.get(field) == entry for field in fields)
    return reverse("endpoint_undo", args=[endpoint.name, entry.pk]) if stands else ""


def _place(name: str) -> str:
    return reverse("endpoint", args=[name])


urlpatterns = [
    path("endpoints/<name:name>/", page, name="endpoint"),
    path("endpoints/<name:name>/settings/", save, name="endpoint_settings"),
    path("endpoints/<name:name>/settings/effect/", effect, name="endpoint_effect"),
]
