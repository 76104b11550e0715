"""What will it do; what did it really do? One address from the frozen set to the outcome of each message (C4)."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import access, answers, operation_words, trouble
from pgqueue_admin.console.existing import existing
from pgqueue_admin.console.operation import outcomes, preview, progress
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.operations import guard, service
from pgqueue_admin.operations.freezing import LAPSES_AFTER
from pgqueue_admin.records.models import Operation
from pgqueue_admin.wording import questions


@require_safe
def page(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    if operation.state == Operation.State.FROZEN:
        return _preview(request, operation)
    found, problem = trouble.read(lambda connection: outcomes.read(connection, operation, request.GET))
    about = {
        "operation": operation,
        "what": operation_words.what(operation),
        "progress": progress.of(operation),
        "found": found,
        "outcome_filters": outcomes.filters(operation),
        "trouble": problem,
        "refusal": access.may(request.user, operation.kind),
    }
    return render(request, "pgqueue_admin/operations/page.html", about)


def _preview(request: HttpRequest, operation: Operation, fault: str = "") -> HttpResponse:
    found, problem = trouble.read(lambda connection: preview.read(connection, operation))
    about = {
        "operation": operation,
        "what": operation_words.what(operation),
        "found": found,
        "trouble": problem,
        "plan": guard.plan(operation),
        "lapses_at": operation.created_at + LAPSES_AFTER,
        "fault": fault,
        "effect": questions.effect(operation.kind, settings.PGQUEUE["ARCHIVE_DAYS"]),
        "button": operation_words.button(operation, settings.PGQUEUE["ENVIRONMENT"]),
        "keep": questions.KEEP[operation.kind],
        "refusal": access.may(request.user, operation.kind),
    }
    return render(request, "pgqueue_admin/operations/preview.html", about, status=422 if fault else 200)


@require_POST
def start(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    reason = answers.reason(request)
    allowed = operation.state == Operation.State.FROZEN and not access.may(request.user, operation.kind)
    if allowed and (fault := guard.plan(operation).fault(reason, request.POST.get("count", ""))):
        return _preview(request, operation, fault)
    try:
        service.start(number, request.user, reason, request.POST.getlist("target"))
    except service.Refused as error:
        answers.refused(request, str(error))
    except DatabaseError as error:
        answers.failed(request, f"Nothing was started. {error}")
    return answers.SeeOther(_place(number))


@require_POST
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    existing(Operation, f"There is no operation {number}.", pk=number)
    try:
        operation = service.cancel(number, request.user)
        finishing = progress.of(operation).finishing
        came = operation_words.FINISHING if finishing else f"Cancelled. {operation_words.ended(operation)}"
        answers.done(request, f"{came}.")
    except service.Refused as error:
        answers.refused(request, str(error))
    except DatabaseError as error:
        answers.failed(request, f"Its frozen set stays for now. {error}")
    return answers.SeeOther(_place(number))


def _place(number: int) -> str:
    return reverse("operation", args=[number])


urlpatterns = [
    path("operations/<int:number>/", page, name="operation"),
    path("operations/<int:number>/start/", start, name="operation_start"),
    path("operations/<int:number>/cancel/", cancel, name="operation_cancel"),
]
