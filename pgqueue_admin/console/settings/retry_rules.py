"""Rules that redirect retries of a type, or of a renamed queue: all of them, and adding one."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.queues import input_queues
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import RetryRule
from pgqueue_admin.services import retry_rules
from pgqueue_admin.services.operations import redirects
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused

FIELDS = ("message_type", "queue", "target")


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _page(request)


def _create(request: HttpRequest) -> HttpResponse:
    message_type, queue, target = (request.POST.get(name, "") for name in FIELDS)
    reason = responses.reason(request)
    try:
        rule = retry_rules.create(message_type, queue, target, request.user, "console", reason)
    except OperationNotAllowed as error:
        return _page(request, str(error), 403)
    except (OperationRefused, DatabaseError) as error:
        return _page(request, str(error), 422)
    undo = Way("Undo", reverse("retry_rule_remove", args=[rule.pk]), {})
    responses.done(request, f"Rule {rule.pk} is kept. A retry shows it before it starts.", undo)
    return responses.back(request, "retry_rules")


@require_POST
def remove(request: HttpRequest, number: int) -> HttpResponse:
    try:
        gone = retry_rules.remove(number, request.user, "console", responses.reason(request))
        undo = Way("Undo", reverse("retry_rules"), {name: getattr(gone, name) for name in FIELDS})
        responses.done(request, f"Rule {number} is removed. Operations that were started with it go on with it.", undo)
    except OperationRefused as error:
        responses.refused(request, str(error))
    return responses.SeeOther(reverse("retry_rules"))


def _page(request: HttpRequest, fault: str = "", status: int = 200) -> HttpResponse:
    asked = request.POST if request.method == "POST" else request.GET
    rows = list(RetryRule.objects.all())
    refused, problem = query_errors.read(lambda connection: _refused(connection, rows))
    about = {
        "rules": [(row, (refused or {}).get(row.pk, "")) for row in rows],
        "trouble": problem,
        "typed": {name: asked.get(name, "")[: retry_rules.LONGEST] for name in FIELDS},
        "reason": responses.reason(request),
        "next": asked.get("next", ""),
        "fault": fault,
        "queues": input_queues.known(),
        "refusal": permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/settings/retry_rules.html", about, status=status)


def _refused(connection: Connection, rows: list[RetryRule]) -> dict[int, str]:
    """Rule → why it would send nothing now."""
    rules = [redirects.Rule(row.pk, row.message_type, row.queue, row.target) for row in rows]
    return {each.number: redirects.blocking_reason(connection, each.address) for each in rules}


urlpatterns = [
    path("settings/retry-rules/", page, name="retry_rules"),
    path("settings/retry-rules/<int:number>/remove/", remove, name="retry_rule_remove"),
]
