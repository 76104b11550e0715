"""A message that ends its process: at which deaths it was in hand, and moving it out of its queue."""

from typing import Any, NamedTuple
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import access, answers, paths, processes, trouble
from pgqueue_admin.console.answers import Way
from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor.message import Message
from pgqueue_admin.operations import moving_out
from pgqueue_admin.operations.errors import Refused, Unknown
from pgqueue_admin.records import fatal
from pgqueue_admin.records import processes as records
from pgqueue_admin.records.fatal import Fatal


class Place(NamedTuple):
    """Where the message is now: in its queue, or in the archive, or neither."""

    waiting: Message | None
    archived: list[Any]


@require_safe
def page(request: HttpRequest, row_id: UUID) -> HttpResponse:
    found = _found(row_id)
    place, problem = trouble.read(lambda connection: _place(connection, found))
    refusal = access.may(request.user, "move_out")
    about: dict[str, Any] = {"fatal": found, "place": place, "trouble": problem, "refusal": refusal}
    if place and not place.waiting:
        about |= {"halt": _halt(found), "run_refusal": access.may(request.user, "run")}
    return render(request, "pgqueue_admin/fatal/page.html", about)


@require_POST
def move_out(request: HttpRequest, row_id: UUID) -> HttpResponse:
    found = _found(row_id)
    if refusal := access.may(request.user, "move_out"):
        answers.refused(request, f"Nothing was moved: {refusal}.")
        return answers.SeeOther(reverse("fatal", args=[row_id]))
    try:
        moved = moving_out.move_out(row_id, request.user, "console", answers.reason(request))
    except (Refused, Unknown) as error:
        answers.refused(request, str(error))
        return answers.SeeOther(reverse("fatal", args=[row_id]))
    halt = _halt(found)
    state = halt.why if halt else "goes on"
    said = f"Moved out of {found.address.table}. It lies dead in the archive; {found.endpoint} {state}."
    ways = (
        Way("See the message", reverse("archived_message", args=[moved.archive_id])),
        Way("See the queue", paths.queue(found.address)),
    )
    answers.done(request, said, *ways)
    if halt:  # there stands the act that makes it go on
        return answers.SeeOther(reverse("fatal", args=[row_id]))
    return answers.SeeOther(reverse("archived_message", args=[moved.archive_id]))


def _halt(found: Fatal) -> processes.Halt | None:
    staffed = records.by_endpoint([found.endpoint])
    return processes.halted(staffed[0]) if staffed else None


def _found(row_id: UUID) -> Fatal:
    found = fatal.suspect(row_id)
    if found is None:
        raise Http404("No process is known to have ended with this message in hand.")
    return found


def _place(connection: Connection, found: Fatal) -> Place:
    waiting = moving_out.waiting(connection, found)
    return Place(waiting, [] if waiting else store.sightings(connection, str(found.row_id)).rows)


urlpatterns = [
    path("fatal/<uuid:row_id>/", page, name="fatal"),
    path("fatal/<uuid:row_id>/move-out/", move_out, name="move_out"),
]
