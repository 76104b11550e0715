"""One queue: what is in it, and why does it not move?"""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import permissions, query_errors
from pgqueue_admin.console.endpoints import health
from pgqueue_admin.console.endpoints.form import EndpointSettingsForm
from pgqueue_admin.console.endpoints.setting_effects import Effect
from pgqueue_admin.console.leases import views as leases
from pgqueue_admin.console.overview import activity
from pgqueue_admin.console.queues.detail import head_and_tail as ends
from pgqueue_admin.console.queues.detail import series
from pgqueue_admin.console.queues.detail.gone_queue import KnownQueue
from pgqueue_admin.console.queues.detail.page_data import QueueData
from pgqueue_admin.console.settings import endpoint_rows
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseError, TimedOut
from pgqueue_admin.dialects.table_fault import TableFault
from pgqueue_admin.models import Queue, database_clock
from pgqueue_admin.models.processes import EndpointProcesses
from pgqueue_admin.services import content_access, endpoints
from pgqueue_admin.services import leases as lease_acts
from pgqueue_admin.services.content_access import ContentAccess

SLOW = (
    "Stopped after 1 s: there are many deleted rows before the head to read past. The figures above are the sampler's."
)


@require_safe
def page(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    queue = Queue.objects.select_related("latest").filter(schema=schema, table=table).first()
    if queue is None:
        return _never_seen(request, Address(schema, table))
    return show(request, queue)


def show(
    request: HttpRequest,
    queue: Queue,
    form: EndpointSettingsForm | None = None,
    more: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """``form``: its endpoint's settings as typed, with ``more`` context about them."""
    view = QueueData(queue)
    window = request.GET.get("w", "")
    drawn = series.load(queue.pk, window if window in series.WINDOWS else "1h", database_clock.now())
    about = {
        "view": view,
        "row": view.row,
        "series": drawn,
        "series_json": json.dumps(drawn.as_json(), separators=(",", ":")),
        "windows": series.WORDS.items(),
        "team": view.row.team,
        "processes": _processes(view.row.team),
        "known": KnownQueue(view.address) if queue.gone_since else None,
        "settings": _settings(view),
        "changes": [activity.of_entry(entry) for entry in view.history],
        "refusal": permissions.refusal_on_page(request.user, "set"),
        "run_refusal": permissions.refusal_on_page(request.user, "run"),
        "publish_refusal": lease_acts.refusal("publish", view.address, request.user) if view.is_lease else "",
        "purge_refusal": permissions.refusal_on_page(request.user, "purge") or view.why_no_acts,
        "settings_path": f"{view.row.path}#settings",
        **(_form(view, form) if form or "edit" in request.GET else {}),
        **(_looked(view, content_access.of(request.user)) if "ends" in request.GET else {}),
        **(more or {}),
    }
    return render(request, "pgqueue_admin/queues/detail/page.html", about, status=status)


def _never_seen(request: HttpRequest, address: Address) -> HttpResponse:
    """Messages may name a queue that the sampler never saw, because it was gone or is not watched."""
    known = KnownQueue(address)
    status = 200 if known.is_anything else 404
    return render(
        request, "pgqueue_admin/queues/detail/never_seen.html", {"address": address, "known": known}, status=status
    )


@require_safe
def head_and_tail(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """The part that reads the queue itself; the page loads it, with its own limits and its own error."""
    view = QueueData(_queue(schema, table))
    template = "pgqueue_admin/leases/look.html" if view.is_lease else "pgqueue_admin/queues/detail/ends.html"
    return render(
        request,
        template,
        {"view": view, "row": view.row, **_looked(view, content_access.of(request.user))},
    )


def _queue(schema: str, table: str) -> Queue:
    queue = Queue.objects.select_related("latest").filter(schema=schema, table=table).first()
    if queue is None:
        raise Http404(f"No queue {table} was found in schema {schema}.")
    return queue


def _looked(view: QueueData, access: ContentAccess) -> dict[str, object]:
    if view.is_lease:
        return _looked_at_lease(view, access)
    try:
        found, unfit = ends.look(view.address, view.row.latest), _unfit(view)
    except DatabaseError as error:
        return {"looked": True, "ends": None, "fault": _fault(error, view.address)}
    return {"looked": True, "ends": found, "fault": "", "unfit": unfit}


def _looked_at_lease(view: QueueData, access: ContentAccess) -> dict[str, object]:
    try:
        return {"looked": True, "lease": leases.look(view.address, access), "fault": ""}
    except DatabaseError as error:
        return {"looked": True, "lease": None, "fault": _fault(error, view.address)}


def _fault(error: DatabaseError, address: Address) -> str:
    told = query_errors.query_error(error, address)
    if told.kind == "busy":
        return f"{told.sentence} {told.detail}"
    return SLOW if isinstance(error, TimedOut) else str(error)


def _unfit(view: QueueData) -> list[TableFault]:
    return [] if view.queue.gone_since else ends.faults(view.address, view.queue.kind)


def _form(view: QueueData, typed: EndpointSettingsForm | None) -> dict[str, object]:
    """The endpoint's settings as a form, in place; their effect is shown before anything is saved."""
    if view.endpoint is None:
        return {}
    form, known = typed or EndpointSettingsForm(view.endpoint), health.health_of(view.endpoint)
    return {"form": form, "service": known, "effect": Effect(known, form)}


def _processes(team: EndpointProcesses | None) -> list[object]:
    return team.processes if team else []


def _settings(view: QueueData) -> list[endpoint_rows.SettingRow]:
    """Settings of receiving; the endpoint's own page has the others."""
    endpoint = view.endpoint
    return endpoint_rows.receiving(endpoint, endpoints.last_changes(endpoint.name)) if endpoint else []


urlpatterns = [
    path("queues/<name:schema>/<name:table>/", page, name="queue"),
    path("queues/<name:schema>/<name:table>/ends/", head_and_tail, name="queue_ends"),
]
