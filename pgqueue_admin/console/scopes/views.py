"""Which groups see which queues: all scopes, and the acts that give one, allow acts by it, and remove it."""

from typing import Any

from django.contrib.auth.models import Group
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import navigation, responses
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.models import AuditEntry, Queue, QueueScope
from pgqueue_admin.services import queue_access, queue_scopes
from pgqueue_admin.services.queue_scopes import ScopeNotAllowed, ScopeRefused

HISTORY = 20


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """A POST gives a group a scope; with ``remove`` or ``act`` it changes the scope of that number."""
    navigation.stands_under(request, "settings")
    fault, status = "", 200
    if request.method == "POST":
        try:
            responses.done(request, _act(request))
            return responses.SeeOther(reverse("scopes"))
        except ScopeRefused as error:
            fault, status = str(error), 403 if isinstance(error, ScopeNotAllowed) else 422
    return render(request, "pgqueue_admin/scopes/page.html", {**_about(request), "fault": fault}, status=status)


def _act(request: HttpRequest) -> str:
    given, reason = request.POST, responses.reason(request)
    number = parse_int(given.get("remove", "")) or parse_int(given.get("act", ""))
    if "remove" in given:
        gone = queue_scopes.take(number or 0, request.user, "console", reason)
        left = QueueScope.objects.filter(group=gone.group).exists()
        return f"{gone.group.name} has {gone.pattern} no more." + (
            "" if left else f" It was the last: {gone.group.name} hides nothing from its people."
        )
    if "act" in given:
        may_act = given.get("may") == "yes"
        known = queue_scopes.let_act(number or 0, request.user, "console", reason, may_act=may_act)
        return f"{known.group.name} {'acts on' if known.may_act else 'only looks at'} {known.pattern} from now on."
    group = Group.objects.filter(pk=parse_int(given.get("group", "")) or 0).first()
    if group is None:
        raise ScopeRefused("Nothing was changed. Choose a group.")
    acts = given.get("may") == "yes"
    made = queue_scopes.give(group, given.get("pattern", ""), request.user, "console", reason, may_act=acts)
    return f"People of {group.name} see {made.pattern} from now on, and of other queues what their scopes say."


def _about(request: HttpRequest) -> dict[str, Any]:
    names = list(Queue.objects.filter(gone_since=None).values_list("schema", "table"))
    scopes = QueueScope.objects.select_related("group")
    return {
        "scopes": [(scope, _matching(scope.pattern, names)) for scope in scopes],
        "groups": Group.objects.order_by("name"),
        "of": len(names),
        "entries": AuditEntry.objects.filter(noun="scope")[:HISTORY],
        "refusal": queue_scopes.refusal(request.user),
    }


def _matching(pattern: str, names: list[tuple[str, str]]) -> int:
    matches = queue_access.matcher(pattern)
    return sum(matches(*each) for each in names)


urlpatterns = [path("settings/scopes/", page, name="scopes")]
