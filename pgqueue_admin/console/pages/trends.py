"""Is it slower than usual, and when did it start?"""

import csv

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console.trends import window
from pgqueue_admin.console.trends.view import MEASURE_WORDS, View
from pgqueue_admin.pipeline import trends
from pgqueue_admin.pipeline.freshness import freshness
from pgqueue_admin.records import clock
from pgqueue_admin.wording import times

NAMES = ("queue", "endpoint", "type")


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found = window.read(request.GET, clock.now())
    view = View(found, request.GET.get("m", ""))
    if request.GET.get("format") == "csv":
        return _csv(view)
    choices = [(name, trends.kinds(found.asked, name), getattr(found.asked, name)) for name in NAMES]
    about = {
        "view": view,
        "window": found,
        "lengths": window.WORDS.items(),
        "measures": MEASURE_WORDS.items(),
        "choices": choices,
        "narrowed": any(chosen for _, _, chosen in choices),
        "freshness": freshness(),
    }
    return render(request, "pgqueue_admin/trends/page.html", about)


def _csv(view: View) -> HttpResponse:
    """Every step of the window in which something finished, times in UTC, spans in milliseconds."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="trends-{view.window.name}-{view.measure}.csv"'
    lines = csv.writer(answer)
    lines.writerow(["at", "succeeded", "failed", "p50_ms", "p95_ms", "p99_ms"])
    for step in reversed(view.steps):
        spans = [round(each, 1) for each in step.percentiles] if step.percentiles else ["", "", ""]
        lines.writerow([times.iso(step.at), step.counts.succeeded, step.counts.failed, *spans])
    return answer


urlpatterns = [path("trends/", page, name="trends")]
