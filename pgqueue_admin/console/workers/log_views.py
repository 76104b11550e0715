"""What did this process print, and what does it print now?"""

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.console.workers import log_files
from pgqueue_admin.models import Process
from pgqueue_admin.services import content_access
from pgqueue_admin.workers.reporting import process_identity

MOST_LINES = 1_000
_MASKED = "Not downloaded: masking rules hide parts of it. Its page shows the other parts."
_NO_PROCESS = "No process has this number, or it was forgotten since: Workers lists those that are known."


@require_safe
def log(request: HttpRequest, process_id: int) -> HttpResponse:
    """A log may hold message content: reading it needs the rights to run processes and to read messages."""
    process, refusal = existing(Process, _NO_PROCESS, pk=process_id), log_files.refusal_for(request.user)
    lines = [] if refusal else log_files.last_lines(process, MOST_LINES, content_access.of(request.user))
    words, level = request.GET.get("q", ""), request.GET.get("level", "")
    level = level if level in log_files.LEVELS else ""
    shown = log_files.picked(lines, words, level)
    asked = {"q": words, "level": level, "levels": log_files.LEVELS, "follows": request.GET.get("follow") == "1"}
    about = {"process": process, "lines": shown, "all": len(lines), "refusal": refusal, **asked}
    elsewhere = process.host != process_identity.host()
    return render(request, "pgqueue_admin/workers/log.html", {**about, "elsewhere": elsewhere})


@require_safe
def whole(request: HttpRequest, process_id: int) -> HttpResponseBase:
    """Download the file unchanged."""
    process, refusal = existing(Process, _NO_PROCESS, pk=process_id), log_files.refusal_for(request.user)
    if refusal:
        return HttpResponse(f"Reading it {refusal}.\n", status=403, content_type="text/plain; charset=utf-8")
    if content_access.of(request.user).reads_texts:
        return HttpResponse(f"{_MASKED}\n", status=403, content_type="text/plain; charset=utf-8")
    if (found := log_files.path_of(process)) is None:
        raise Http404("The log is not on this machine, or it is gone.")
    answer = FileResponse(found.open("rb"), as_attachment=True, filename=found.name, content_type="text/plain")
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


urlpatterns = [
    path("workers/<int:process_id>/log/", log, name="worker_log"),
    path("workers/<int:process_id>/log/whole/", whole, name="worker_log_whole"),
]
