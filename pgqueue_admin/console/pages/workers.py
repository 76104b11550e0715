"""Is every process up, and what does the broken one say?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import access, process_logs, processes
from pgqueue_admin.records import fatal
from pgqueue_admin.records import processes as records

LAST_LINES = 5


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    staffed = sorted(records.by_endpoint(), key=lambda each: (not each.missing, each.endpoint.name))
    found = processes.rows(records.current(), staffed)
    hosts = processes.hosts(found)
    suspects = fatal.suspects()
    state, sentence = processes.verdict(staffed, any(host.supervisor for host in hosts), suspects)
    may_read = not access.may(request.user, "log")
    last = LAST_LINES if may_read else 0
    silent = {host.name for host in hosts if host.silent_since}
    broken = [row for row in found if row.tone and row.process.host not in silent]
    return render(
        request,
        "pgqueue_admin/workers/page.html",
        {
            "hosts": hosts,
            "silent": [host for host in hosts if host.silent_since],
            "staffed": staffed,
            "broken": [(row, process_logs.last_lines(row.process, last)) for row in broken],
            "suspects": suspects,
            "verdict": sentence,
            "verdict_state": state,
            "refusal": access.may(request.user, "run"),
        },
    )


urlpatterns = [path("workers/", page, name="workers")]
