"""Is every process up, and what does the broken one say?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import permissions, responses
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.console.workers import log_files, rows
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint, crashing_messages, endpoint_standings, processes
from pgqueue_admin.services import content_access, hosts, queue_access
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.permissions import Refusal

LAST_LINES = 5


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    staffed = sorted(processes.by_endpoint(), key=lambda each: (not each.missing, each.endpoint.name))
    found = rows.known(staffed)
    by_host = rows.hosts(found)
    suspects = crashing_messages.suspects()
    verdict = rows.verdict(endpoint_standings.of(staffed), found, suspects)
    may_read = addresses.is_open("worker_log") and not log_files.refusal_for(request.user)
    access = content_access.of(request.user)
    last = LAST_LINES if may_read else 0
    silent = {host.name for host in by_host if host.silent_since}
    broken = [row for row in found if row.tone and row.process.host not in silent]
    return render(
        request,
        "pgqueue_admin/workers/page.html",
        {
            "hosts": by_host,
            "silent": [host for host in by_host if host.silent_since],
            "others": any(host.supervisor and not host.silent_since for host in by_host),
            "staffed": [(each, _refusal(request, each.endpoint)) for each in staffed],
            "broken": [
                (
                    row,
                    row.trouble(access),
                    log_files.last_lines(row.process, last, access),
                    _refusal(request, row.endpoint) if row.endpoint else None,
                )
                for row in broken
            ],
            "failing": rows.failing(staffed),
            "may_read": may_read,
            "suspects": suspects,
            "verdict": verdict,
            "refusal": permissions.refusal_on_page(request.user, "run"),
        },
    )


def _refusal(request: HttpRequest, endpoint: Endpoint) -> Refusal | None:
    """Why this person may not start or stop it: by their rights, or by the scope of its queue."""
    known = permissions.refusal_on_page(request.user, "run")
    return known or queue_access.refusal_for(Address(endpoint.schema, endpoint.table))


@require_POST
def give_up(request: HttpRequest, host: str) -> HttpResponse:
    if refusal := permissions.refusal_on_page(request.user, "run"):
        responses.refused(request, f"Nothing was changed: {refusal}.")
        return responses.back(request, "workers")
    try:
        hosts.give_up(host, request.user, "console")
    except ActRefused as error:
        responses.refused(request, str(error))
    else:
        responses.done(request, f"{host} is given up: nobody misses it any more. Heard from again, it is back here.")
    return responses.back(request, "workers")


urlpatterns = [
    path("workers/", page, name="workers"),
    path("workers/<name:host>/give-up/", give_up, name="host_give_up"),
]
