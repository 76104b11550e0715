"""What will it do; what did it really do? One address from the frozen set to the outcome of each message (C4)."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.operations import labels, preview, progress, results
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.models import Operation
from pgqueue_admin.services import operations
from pgqueue_admin.services.operations import confirmation
from pgqueue_admin.services.operations.selection import LAPSES_AFTER


@require_safe
def page(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    if operation.state == Operation.State.FROZEN:
        return _preview(request, operation)
    found, problem = query_errors.read(lambda connection: results.read(connection, operation, request.GET))
    about = {
        "operation": operation,
        "what": labels.what(operation),
        "progress": progress.of(operation),
        "found": found,
        "outcome_filters": results.filters(operation),
        "trouble": problem,
        "refusal": permissions.refusal_for(request.user, operation.kind),
    }
    return render(request, "pgqueue_admin/operations/page.html", about)


def _preview(request: HttpRequest, operation: Operation, fault: str = "") -> HttpResponse:
    found, problem = query_errors.read(lambda connection: preview.read(connection, operation))
    about = {
        "operation": operation,
        "what": labels.what(operation),
        "found": found,
        "trouble": problem,
        "plan": confirmation.plan(operation),
        "lapses_at": operation.created_at + LAPSES_AFTER,
        "fault": fault,
        "effect": confirmations.effect(operation.kind, settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
        "button": labels.button(operation, settings.PGQUEUE["ENVIRONMENT"]),
        "keep": confirmations.KEEP[operation.kind],
        "refusal": permissions.refusal_for(request.user, operation.kind),
    }
    return render(request, "pgqueue_admin/operations/preview.html", about, status=422 if fault else 200)


@require_POST
def start(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    reason = responses.reason(request)
    allowed = operation.state == Operation.State.FROZEN and not permissions.refusal_for(request.user, operation.kind)
    if allowed and (fault := confirmation.plan(operation).fault(reason, request.POST.get("count", ""))):
        return _preview(request, operation, fault)
    try:
        operations.start(number, request.user, reason, request.POST.getlist("target"))
    except operations.OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was started. {error}")
    return responses.SeeOther(_place(number))


@require_POST
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    existing(Operation, f"There is no operation {number}.", pk=number)
    try:
        operation = operations.cancel(number, request.user)
        finishing = progress.of(operation).finishing
        came = labels.FINISHING if finishing else f"Cancelled. {labels.ended(operation)}"
        responses.done(request, f"{came}.")
    except operations.OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Its frozen set stays for now. {error}")
    return responses.SeeOther(_place(number))


def _place(number: int) -> str:
    return reverse("operation", args=[number])


urlpatterns = [
    path("operations/<int:number>/", page, name="operation"),
    path("operations/<int:number>/start/", start, name="operation_start"),
    path("operations/<int:number>/cancel/", cancel, name="operation_cancel"),
]
