"""Copy as new: the form that sends a copy of one message, archived or waiting."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive import store
from pgqueue_admin.archive.message_copy import ArchivedOne, Original, WaitingOne
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.queues import input_queues
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import message_copies, typed_messages
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.targets import parsed
from pgqueue_admin.services.unattended import without_receiver

METHODS = require_http_methods(["GET", "HEAD", "POST"])


@METHODS
def archived(request: HttpRequest, archive_id: int) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: store.followed(connection, archive_id))
    if found is None and problem is None:
        raise Http404(f"There is no archived message {archive_id}.")
    home = next(iter(parsed([found.queue])), None) if found and found.queue else None
    return _page(request, ArchivedOne(archive_id), home, reverse("archived_message", args=[archive_id]))


@METHODS
def waiting(request: HttpRequest, schema: str, table: str, row_id: UUID) -> HttpResponse:
    address = Address(schema, table)
    return _page(
        request, WaitingOne(address, row_id), address, reverse("waiting_message", args=[schema, table, row_id])
    )


def _page(request: HttpRequest, original: Original, home: Address | None, back: str) -> HttpResponse:
    typed = request.POST.get("target", "") or request.GET.get("target", "")
    target = next(iter(parsed([typed])), None) if typed else home
    if request.method != "POST":
        return _form(request, target, back)
    if target is None:
        return _form(request, target, back, "Nothing was sent: choose the queue that it goes to.", 422)
    try:
        sent = message_copies.copy(
            original, target, request.user, "console", responses.reason(request), responses.form_key(request)
        )
    except OperationNotAllowed as error:
        return _form(request, target, back, str(error), 403)
    except OutcomeUnknown as error:
        return _form(request, target, back, str(error), 503)
    except OperationRefused as error:
        return _form(request, target, back, str(error), 422)
    see = Way("Find the copy", reverse("find_message", args=[sent]))
    responses.done(request, f"1 copy sent to {target.table} as {sent}. The original stays as it is.", see)
    return responses.SeeOther(back)


def _form(request: HttpRequest, target: Address | None, back: str, fault: str = "", status: int = 200) -> HttpResponse:
    name = queue_database().dialect.canonical(target) if target else ""

    def blocking_reason(connection: Connection) -> str:
        return typed_messages.blocking_reason(connection, target) if target else ""

    why, problem = query_errors.read(blocking_reason, target)
    about: dict[str, Any] = {
        "back": back,
        "fault": fault,
        "trouble": problem,
        "name": name,
        "target": target,
        "blocking_reason": why,
        "queues": input_queues.known(target),
        "without_receiver": without_receiver([name]) if target and not why else [],
        "reason": responses.reason(request),
        "form_key": responses.next_form_key(request),
        "refusal": permissions.refusal_on_page(request.user, "send"),
    }
    return render(request, "pgqueue_admin/messages/detail/copy.html", about, status=status)


urlpatterns = [
    path("archive/<int:archive_id>/copy/", archived, name="copy_archived"),
    path("queues/<name:schema>/<name:table>/messages/<uuid:row_id>/copy/", waiting, name="copy_waiting"),
]
