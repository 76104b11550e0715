"""Is history complete, and what does the last batch say?"""

from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import access, answers
from pgqueue_admin.pipeline.freshness import freshness
from pgqueue_admin.pipeline.installing import missing
from pgqueue_admin.pipeline.places import folder
from pgqueue_admin.records import history
from pgqueue_admin.records.models import HistoryBatch, HistoryFile, HistorySource, Process

SHOWN = 30


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    about = {
        "freshness": freshness(),
        "sources": HistorySource.objects.order_by("table"),
        "batches": HistoryBatch.objects.select_related("source").order_by("-planned_at")[:SHOWN],
        "files": HistoryFile.objects.aggregate(number=Count("id"), rows=Sum("rows"), bytes=Sum("bytes")),
        "folder": folder(),
        "missing": missing(),
        "process": Process.objects.filter(role="pipeline").order_by("-heartbeat_at").first(),
        "refusal": access.may(request.user, "run"),
    }
    return render(request, "pgqueue_admin/pipeline/page.html", about)


@require_POST
def run_now(request: HttpRequest) -> HttpResponse:
    if refusal := access.may(request.user, "run"):
        answers.refused(request, f"Nothing was asked for: {refusal}.")
    else:
        history.read_now(request.user, "console")
        answers.done(request, "Asked for: what has finished until now is read next.")
    return answers.back(request, "/pipeline/")


urlpatterns = [
    path("pipeline/", page, name="pipeline"),
    path("pipeline/run/", run_now, name="pipeline_run"),
]
