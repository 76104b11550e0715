"""Rules that retry dead lease messages automatically: all of them, what each did, and adding one."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from pgqueue_admin.archive.lease_rules import CAP, RESULTS, LeaseRule, RuleDone
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.services import lease_rules
from pgqueue_admin.services.lease_rules import RuleDraft
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused

BEGUN = {"message_type": "", "times": "3", "wait": "60", "failed": "on", "lock_expired": "on"}


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _page(request)


def _create(request: HttpRequest) -> HttpResponse:
    try:
        number = lease_rules.create(_typed(request.POST), request.user, "console", responses.reason(request))
    except OperationNotAllowed as error:
        return _page(request, str(error), 403)
    except (OperationRefused, DatabaseError) as error:
        return _page(request, str(error), 422)
    undo = Way("Undo", reverse("lease_rule_remove", args=[number]), {})
    responses.done(request, f"Lease rule {number} is kept. It is for messages that die from now on.", undo)
    return responses.SeeOther(reverse("lease_rules"))


@require_POST
def remove(request: HttpRequest, number: int) -> HttpResponse:
    try:
        was = lease_rules.remove(number, request.user, "console", responses.reason(request))
        undo = Way("Undo", reverse("lease_rules"), _fields(was))
        responses.done(request, f"Lease rule {number} is removed. What waited for it stays dead.", undo)
    except (OperationRefused, DatabaseError) as error:
        responses.refused(request, str(error))
    return responses.SeeOther(reverse("lease_rules"))


def _typed(posted: QueryDict) -> RuleDraft:
    """An invalid number becomes 0, which no rule accepts."""
    results = tuple(each for each in RESULTS if posted.get(each) == "on")
    times, wait = parse_int(posted.get("times")), parse_int(posted.get("wait"))
    return RuleDraft(posted.get("message_type", "").strip(), results, times or 0, wait or 0)


def _fields(draft: RuleDraft) -> dict[str, str]:
    about = {"message_type": draft.message_type, "times": str(draft.times), "wait": str(draft.wait_seconds)}
    return about | dict.fromkeys(draft.results, "on")


def _page(request: HttpRequest, fault: str = "", status: int = 200) -> HttpResponse:
    found, problem = query_errors.read(_read)
    typed = request.POST.dict() if request.method == "POST" else BEGUN
    about = {
        **(found or {}),
        "trouble": problem,
        "typed": typed,
        "results": RESULTS,
        "reason": responses.reason(request),
        "fault": fault,
        "queue": QUEUE,
        "refusal": permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/settings/lease_rules.html", about, status=status)


def _read(connection: Connection) -> dict[str, Any]:
    rules = lease_rules.all_rules(connection)
    done = lease_rules.done(connection) if rules else {}
    return {
        "rules": [_row(each, done.get(each.id, RuleDone(0, None))) for each in rules],
        "blocking_reason": lease_rules.blocking_reason(connection),
        "runs": lease_rules.runs(connection),
    }


def _row(rule: LeaseRule, done: RuleDone) -> dict[str, Any]:
    return {
        "rule": rule,
        "waits": [rule.wait(nth).total_seconds() for nth in (1, rule.times)],
        "retried": min(done.number, CAP),
        "how": "capped" if done.number > CAP else "counted",
        "last_at": done.last_at,
    }


urlpatterns = [
    path("settings/lease-rules/", page, name="lease_rules"),
    path("settings/lease-rules/<int:number>/remove/", remove, name="lease_rule_remove"),
]
