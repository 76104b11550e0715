"""A message that crashes its process: the crashes while it was in flight, and moving it out of its queue."""

from typing import Any, NamedTuple
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import permissions, query_errors, responses, url_converters
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.workers import rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import crashing_messages, processes
from pgqueue_admin.models.crashing_messages import CrashingMessage
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.services.operations import crashing_message
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown


class MessagePlace(NamedTuple):
    """Where the message is now: in its queue, or in the archive, or neither."""

    waiting: WaitingMessage | None
    archived: list[Any]


@require_safe
def page(request: HttpRequest, row_id: UUID) -> HttpResponse:
    found = _found(row_id)
    place, problem = query_errors.read(lambda connection: _place(connection, found))
    refusal = permissions.refusal_on_page(request.user, "move_out")
    about: dict[str, Any] = {"crashing": found, "place": place, "trouble": problem, "refusal": refusal}
    if place and not place.waiting:
        about |= {"halt": _halt(found), "run_refusal": permissions.refusal_on_page(request.user, "run")}
    return render(request, "pgqueue_admin/crashing_message/page.html", about)


@require_POST
def move_out(request: HttpRequest, row_id: UUID) -> HttpResponse:
    found = _found(row_id)
    if refusal := permissions.refusal_on_page(request.user, "move_out"):
        responses.refused(request, f"Nothing was moved: {refusal}.")
        return responses.SeeOther(reverse("crashing_message", args=[row_id]))
    try:
        moved = crashing_message.move_out(row_id, request.user, "console", responses.reason(request))
    except (OperationRefused, OutcomeUnknown) as error:
        responses.refused(request, str(error))
        return responses.SeeOther(reverse("crashing_message", args=[row_id]))
    halt = _halt(found)
    state = halt.why if halt else "goes on"
    said = f"Moved out of {found.address.table}. It is dead, in the archive; {found.endpoint} {state}."
    ways = (
        Way("See the message", reverse("archived_message", args=[moved.archive_id])),
        Way("See the queue", url_converters.queue(found.address)),
    )
    responses.done(request, said, *ways)
    if halt:  # that page has the act that resumes the endpoint
        return responses.SeeOther(reverse("crashing_message", args=[row_id]))
    return responses.SeeOther(reverse("archived_message", args=[moved.archive_id]))


def _halt(found: CrashingMessage) -> rows.EndpointHalt | None:
    staffed = processes.by_endpoint([found.endpoint])
    return rows.halted(staffed[0]) if staffed else None


def _found(row_id: UUID) -> CrashingMessage:
    found = crashing_messages.suspect(row_id)
    if found is None:
        raise Http404("No process is known to have ended with this message in flight.")
    return found


def _place(connection: Connection, found: CrashingMessage) -> MessagePlace:
    waiting = crashing_message.waiting(connection, found)
    return MessagePlace(waiting, [] if waiting else store.sightings(connection, str(found.row_id)).rows)


urlpatterns = [
    path("crashing-messages/<uuid:row_id>/", page, name="crashing_message"),
    path("crashing-messages/<uuid:row_id>/move-out/", move_out, name="move_out"),
]
