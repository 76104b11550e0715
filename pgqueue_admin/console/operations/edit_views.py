"""Bulk edit before a retry starts: one header or field changes in each message, with a preview (CONSOLE 4)."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive import store
from pgqueue_admin.archive.message_edit import MessageEdit
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.operations import edit_form, labels
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.dialects import Connection
from pgqueue_admin.models import Operation
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import edits, queries
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused

TEMPLATE = "pgqueue_admin/operations/edit.html"


@dataclass(frozen=True, slots=True)
class EditPage:
    """``part``: what the form starts with, by the set's first message."""

    known: edit_form.KnownNames
    shown: edit_form.ShownLook | None
    part: str


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    if operation.state != Operation.State.FROZEN or operation.kind != Operation.Kind.RETRY:
        responses.refused(request, "Nothing was changed: only a retry that is not started can be changed.")
        return responses.SeeOther(reverse("operation", args=[number]))
    if request.method != "POST":
        kept = edits.of(operation)
        return _page(request, operation, kept.edit if kept and not _hides(request, kept.edit) else None)
    if "look" in request.POST:
        return _page(request, operation, edit_form.given(request.POST))
    return _keep(request, operation, None if "drop" in request.POST else edit_form.given(request.POST))


def _keep(request: HttpRequest, operation: Operation, edit: MessageEdit | None) -> HttpResponse:
    try:
        edits.propose(operation.pk, edit, request.user)
    except OperationRefused as error:
        status = 403 if isinstance(error, OperationNotAllowed) else 422
        return _page(request, operation, edit, str(error), status)
    return responses.SeeOther(reverse("operation", args=[operation.pk]))


def _hides(request: HttpRequest, edit: MessageEdit) -> bool:
    """Whether a colleague's edit may quote content that this person may not read."""
    return content_access.of(request.user).hides_edited(edit.part, edit.name)


def _page(
    request: HttpRequest, operation: Operation, edit: MessageEdit | None, fault: str = "", status: int = 200
) -> HttpResponse:
    access = content_access.of(request.user)
    fault = fault or (edit.fault() if edit else "")

    def read(connection: Connection) -> EditPage:
        looks = edit if edit and not fault and not access.refusal else None
        return _read(connection, operation, looks, access)

    found, problem = query_errors.read(read)
    about = {
        "operation": operation,
        "what": labels.what(operation),
        "edit": edit or MessageEdit(found.part if found else "header", "", "set"),
        "ways": list(edit_form.WAYS.items()),
        "fault": fault,
        "found": found,
        "trouble": problem,
        "refusal": permissions.refusal_on_page(request.user, "retry"),
        "unread": access.refusal,
    }
    return render(request, TEMPLATE, about, status=status)


def _read(connection: Connection, operation: Operation, edit: MessageEdit | None, access: ContentAccess) -> EditPage:
    samples = queries.samples(connection, operation, 1)
    message = store.show(connection, samples[0].archive_id) if samples else None
    known = edit_form.names(access.archived(message).headers if message else None)
    part = "field" if message and message.kind == "lease" else "header"
    return EditPage(known, edit_form.looked(connection, operation, edit, access) if edit else None, part)


urlpatterns = [path("operations/<int:number>/edit/", page, name="operation_edit")]
