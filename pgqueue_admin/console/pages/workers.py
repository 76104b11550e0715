"""Is every process up, and what does the broken one say?"""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import access, processes
from pgqueue_admin.records import fatal
from pgqueue_admin.records import processes as records
from pgqueue_admin.records.models import Process

LAST_LINES = 5
MOST_LINES = 1_000


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found = [processes.Row(process) for process in records.current()]
    hosts = processes.hosts(found)
    staffed = sorted(records.by_endpoint(), key=lambda each: (not each.missing, each.endpoint.name))
    state, sentence = processes.verdict(staffed, any(host.supervisor for host in hosts))
    broken = [(row, processes.log_lines(row.process, LAST_LINES)) for row in found if row.tone]
    return render(
        request,
        "pgqueue_admin/workers/page.html",
        {
            "hosts": hosts,
            "staffed": staffed,
            "broken": broken,
            "suspects": fatal.suspects(),
            "verdict": sentence,
            "verdict_state": state,
            "refusal": access.may(request.user, "run"),
        },
    )


@require_safe
def log(request: HttpRequest, process_id: int) -> HttpResponse:
    process = get_object_or_404(Process, pk=process_id)
    lines = processes.log_lines(process, MOST_LINES)
    wanted = request.GET.get("q", "")
    shown = [line for line in lines if wanted.lower() in line.lower()]
    about = {"process": process, "lines": shown, "all": len(lines), "q": wanted, "most": MOST_LINES}
    return render(request, "pgqueue_admin/workers/log.html", about)


urlpatterns = [
    path("workers/", page, name="workers"),
    path("workers/<int:process_id>/log/", log, name="worker_log"),
]
