"""Settings by group, and the settings of each queue."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from pgqueue_admin.console import permissions, responses, url_converters
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.queues.form import QueueSettings
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.settings import inventory
from pgqueue_admin.dialects.address import Address
from pgqueue_admin.models import AuditEntry, Endpoint, Queue, settings_words
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queues, waiting_messages
from pgqueue_admin.services.endpoint_change import ActRefused, ChangedMeanwhile

HISTORY = 20


@require_http_methods(["GET", "HEAD"])
def page(request: HttpRequest) -> HttpResponse:
    about = {
        "groups": inventory.groups(),
        "queues": [(queue, Address(queue.schema, queue.table)) for queue in Queue.objects.filter(gone_since=None)],
        "endpoints": Endpoint.objects.filter(kind=Endpoint.Kind.TRANSPORT),
        "refusal": permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/settings/page.html", about)


@require_http_methods(["GET", "HEAD", "POST"])
def queue(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    version = queues.version_of(Address(schema, table))  # before the row: a change in between is refused, not lost
    found = _queue(schema, table)
    if request.method == "POST":
        return _save(request, found)
    return _queue_page(request, found, QueueSettings(found), str(version))


def _save(request: HttpRequest, found: Queue) -> HttpResponse:
    form = QueueSettings(found, request.POST)
    if refusal := permissions.refusal_on_page(request.user, "set"):
        responses.refused(request, f"Nothing was changed: {refusal}.")
    elif not form.is_valid():
        return _queue_page(request, found, form, request.POST.get("version", ""), status=422)
    else:
        _apply(request, found, form)
    return responses.SeeOther(_place(found))


def _apply(request: HttpRequest, found: Queue, form: QueueSettings) -> None:
    changes = form.changes
    said = settings_words.change({name: getattr(found, name) for name in changes}, changes)
    reason, read = responses.reason(request), parse_int(request.POST.get("version"))
    try:
        queues.save_settings(found, changes, request.user, "console", version=read, reason=reason)
    except ChangedMeanwhile as error:
        return responses.refused(request, _meanwhile(error))
    except ActRefused as error:
        return responses.refused(request, str(error))
    if changes:
        return responses.done(request, f"{found.table}: {said}.", *_changed(found))
    return responses.done(request, f"No change. {found.table} stays as it is.")


def _changed(found: Queue) -> list[Way]:
    """Links to the queue, and to the undo of its newest change."""
    last = queues.history(found).first()
    ways = [Way("See the queue", url_converters.queue(Address(found.schema, found.table)))]
    return [*ways, Way("Undo", _undo_url(found, last), {})] if last else ways


def _meanwhile(error: ChangedMeanwhile) -> str:
    did = settings_words.change(error.what.before, error.what.after) if error.what else ""
    return f"{str(error).rstrip('.')}: {did}." if did else str(error)


@require_POST
def undo(request: HttpRequest, schema: str, table: str, entry_id: int) -> HttpResponse:
    found = _queue(schema, table)
    try:
        if refusal := permissions.refusal_on_page(request.user, "set"):
            responses.refused(request, f"Nothing was changed: {refusal}.")
        else:
            queues.undo(found, entry_id, request.user, "console")
            responses.done(request, f"{found.table} is back as it was before.", *_changed(found))
    except AuditEntry.DoesNotExist:
        responses.refused(request, responses.NO_SUCH_CHANGE)
    except ActRefused as error:
        responses.refused(request, str(error))
    return responses.back(request, _place(found))


def _queue_page(
    request: HttpRequest, found: Queue, form: QueueSettings, version: str, status: int = 200
) -> HttpResponse:
    about = {
        "queue": found,
        "address": Address(found.schema, found.table),
        "form": form,
        "version": version,
        "history": _history(found),
        "is_ours": queue_database().is_ours,
        "taken_out": waiting_messages.TAKEN_OUT,
        "refusal": permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/settings/queue.html", about, status=status)


def _history(found: Queue) -> list[tuple[AuditEntry, str]]:
    """Each change, with its undo if what it set still stands."""
    return [(entry, _undo_path(found, entry)) for entry in queues.history(found)[:HISTORY]]


def _undo_path(found: Queue, entry: AuditEntry) -> str:
    return _undo_url(found, entry) if queues.stands(found, entry) else ""


def _undo_url(found: Queue, entry: AuditEntry) -> str:
    return reverse("queue_settings_undo", args=[found.schema, found.table, entry.pk])


def _queue(schema: str, table: str) -> Queue:
    found = Queue.objects.filter(schema=schema, table=table).first()
    if found is None:
        raise Http404("No queue of this name was found.")
    return found


def _place(found: Queue) -> str:
    return reverse("queue_settings", args=[found.schema, found.table])


urlpatterns = [
    path("settings/", page, name="settings"),
    path("settings/queues/<name:schema>/<name:table>/", queue, name="queue_settings"),
    path("settings/queues/<name:schema>/<name:table>/undo/<int:entry_id>/", undo, name="queue_settings_undo"),
]
