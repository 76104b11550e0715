"""Is every process up, and what does the broken one say?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import access, processes
from pgqueue_admin.console.existing import existing
from pgqueue_admin.records import fatal
from pgqueue_admin.records import processes as records
from pgqueue_admin.records.models import Process
from pgqueue_admin.workers import identity

LAST_LINES = 5
MOST_LINES = 1_000


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
            "broken": [(row, processes.log_lines(row.process, last)) for row in broken],
            "suspects": suspects,
            "verdict": sentence,
            "verdict_state": state,
            "refusal": access.may(request.user, "run"),
        },
    )


_NO_PROCESS = "No process has this number, or it was forgotten since: Workers lists those that are known."


@require_safe
def log(request: HttpRequest, process_id: int) -> HttpResponse:
    """What a process prints may hold what its messages hold: it is for those who run it."""
    process, refusal = existing(Process, _NO_PROCESS, pk=process_id), access.may(request.user, "log")
    lines = [] if refusal else processes.log_lines(process, MOST_LINES)
    wanted = request.GET.get("q", "")
    shown = [line for line in lines if wanted.lower() in line.lower()]
    about = {"process": process, "lines": shown, "all": len(lines), "q": wanted, "refusal": refusal}
    elsewhere = process.host != identity.host()
    return render(request, "pgqueue_admin/workers/log.html", {**about, "elsewhere": elsewhere})


urlpatterns = [
    path("workers/", page, name="workers"),
    path("workers/<int:process_id>/log/", log, name="worker_log"),
]
