"""What will it do; what did it really do? One address from the frozen set to the outcome of each message (C4)."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive import crossings
from pgqueue_admin.archive.crossings import Crossing
from pgqueue_admin.archive.store import CappedCount
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.console.operations import edit_form, labels, live_progress, plan_form, preview, results
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.models import Operation, Trial
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import call_back, confirmation, edits, lifecycle, plans, staged_controls
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.operations.selection import LAPSES_AFTER
from pgqueue_admin.services.trials import MOST

TRIALS = 5


@require_safe
def page(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    if operation.state == Operation.State.FROZEN:
        return _preview(request, operation)
    access = content_access.of(request.user)
    found, problem = query_errors.read(lambda connection: results.read(connection, operation, request.GET, access))
    about = {
        "operation": operation,
        "what": labels.what(operation),
        "progress": live_progress.of(operation),
        "found": found,
        "outcome_filters": results.filters(operation),
        "trouble": problem,
        "waiting": _waiting(operation),
        "crossings": _crossings(operation),
        "edited": _edited(operation, access),
        "selection": shown_search.of(operation.selection, access),
        "refusal": permissions.refusal_on_page(request.user, operation.kind),
    }
    return render(request, "pgqueue_admin/operations/page.html", about)


def _edited(operation: Operation, access: ContentAccess) -> str:
    """What it changes in each message, as a sentence; empty if nothing."""
    kept = edits.of(operation)
    return edit_form.words(kept.edit, access) if kept else ""


def _waiting(operation: Operation) -> CappedCount | None:
    """How many of its sent messages can be called back; None if unknown."""
    try:
        return call_back.waiting(operation)
    except DatabaseError:
        return None


def _crossings(operation: Operation) -> list[Crossing]:
    """Its messages between two databases, those that await a decision first; empty if unknown."""
    if operation.kind not in (Operation.Kind.RETRY, Operation.Kind.CALL_BACK) or not addresses.is_open("crossings"):
        return []
    found, _ = query_errors.read(
        lambda connection: [
            *crossings.not_known_ones(connection, operation.pk),
            *crossings.open_ones(connection, operation.pk),
        ]
    )
    return found or []


def _preview(request: HttpRequest, operation: Operation, fault: str = "") -> HttpResponse:
    asked, access = request.POST if fault else request.GET, content_access.of(request.user)
    found, problem = query_errors.read(lambda connection: preview.read(connection, operation, request.user, asked))
    queues = found.queues if found else operation.queues
    about = {
        "staging": plan_form.as_typed(found.staging, request.POST) if found and fault else found and found.staging,
        "operation": operation,
        "what": labels.what(operation, queues),
        "found": found,
        "edited": _edited(operation, access),
        "selection": shown_search.of(operation.selection, access),
        "edit_seen": edits.seen(operation),
        "trouble": problem,
        "plan": confirmation.plan(operation),
        "lapses_at": operation.created_at + LAPSES_AFTER,
        "fault": fault,
        "effect": _effect(operation),
        "button": labels.button(operation, settings.PGQUEUE["ENVIRONMENT"]),
        "when_received": labels.when_received(operation, settings.PGQUEUE["ENVIRONMENT"], queues),
        "keep": confirmations.KEEP["restore" if operation.restores else operation.kind],
        "refusal": permissions.refusal_on_page(request.user, operation.kind),
        "tried": min(operation.count, MOST),
        "trials": Trial.objects.filter(operation_id=operation.pk)[:TRIALS] if operation.kind == "retry" else [],
    }
    return render(request, "pgqueue_admin/operations/preview.html", about, status=422 if fault else 200)


def _effect(operation: Operation) -> str:
    said = confirmations.effect(operation.kind, settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"])
    return f"{confirmations.RESTORES} {said}" if operation.restores else said


@require_POST
def start(request: HttpRequest, number: int) -> HttpResponse:
    operation = existing(Operation, f"There is no operation {number}.", pk=number)
    reason = responses.reason(request)
    allowed = operation.state == Operation.State.FROZEN and not permissions.refusal_on_page(
        request.user, operation.kind
    )
    try:
        planned = plan_form.given(operation, request.POST)
        fault = confirmation.plan(operation).fault(reason, request.POST.get("count", "")) or _fault(planned)
    except plan_form.NotReadable as error:
        planned, fault = None, str(error)
    if allowed and fault:
        return _preview(request, operation, fault)
    try:
        seen = request.POST.get("edit", "") if operation.kind == Operation.Kind.RETRY else None
        rules = [each for each in map(parse_int, request.POST.getlist("rule")) if each is not None]
        lifecycle.start(number, request.user, reason, request.POST.getlist("target"), planned, rules, seen)
    except OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was started. {error}")
    return responses.SeeOther(_place(number))


def _fault(planned: plans.Planned | None) -> str:
    return planned.fault() if planned else ""


@require_POST
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    existing(Operation, f"There is no operation {number}.", pk=number)
    try:
        operation = lifecycle.cancel(number, request.user)
        finishing = live_progress.of(operation).finishing
        came = labels.FINISHING if finishing else f"Cancelled. {labels.ended(operation)}"
        responses.done(request, f"{came}.")
    except OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Its frozen set stays for now. {error}")
    return responses.SeeOther(_place(number))


@require_POST
def pause(request: HttpRequest, number: int) -> HttpResponse:
    said = "Paused. Sent messages stay sent."
    return _steer(request, number, lambda: staged_controls.pause(number, request.user), said)


@require_POST
def resume(request: HttpRequest, number: int) -> HttpResponse:
    reason = responses.reason(request)
    return _steer(request, number, lambda: staged_controls.go_on(number, request.user, reason), "It goes on.")


@require_POST
def rate(request: HttpRequest, number: int) -> HttpResponse:
    wanted, before = plan_form.rate(request.POST.get("rate", "")), plan_form.rate(request.POST.get("before", ""))
    if wanted is None:
        shown = request.POST.get("rate", "")[:40]
        responses.refused(request, f"The rate stays as it is: “{shown}” is no rate. Type messages a second, as 20.")
        return responses.back(request, _place(number))
    said = f"The rest goes at {wanted:g}/s from the next chunk on."
    return _steer(request, number, lambda: staged_controls.change_rate(number, request.user, wanted, before), said)


def _steer(request: HttpRequest, number: int, act: Callable[[], object], said: str) -> HttpResponse:
    existing(Operation, f"There is no operation {number}.", pk=number)
    try:
        act()
        responses.done(request, said)
    except OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was changed. {error}")
    return responses.back(request, _place(number))


def _place(number: int) -> str:
    return reverse("operation", args=[number])


urlpatterns = [
    path("operations/<int:number>/", page, name="operation"),
    path("operations/<int:number>/start/", start, name="operation_start"),
    path("operations/<int:number>/cancel/", cancel, name="operation_cancel"),
    path("operations/<int:number>/pause/", pause, name="operation_pause"),
    path("operations/<int:number>/resume/", resume, name="operation_resume"),
    path("operations/<int:number>/rate/", rate, name="operation_rate"),
]
