"""Which messages does this point of Trends count? The newest of them, and each as history keeps it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console.numbers import whole
from pgqueue_admin.console.reading import body, facts
from pgqueue_admin.console.trends import window
from pgqueue_admin.console.trends.view import MEASURE_WORDS
from pgqueue_admin.operations import service
from pgqueue_admin.pipeline.figures import bands
from pgqueue_admin.pipeline.files import became, finished
from pgqueue_admin.pipeline.freshness import Freshness
from pgqueue_admin.records import clock

RESULTS = {
    "success": "Succeeded",
    "unsuccessful": "Not succeeded",
    "failed": "Failed",
    "rejected": "Rejected",
    "lock_expired": "Lock expired",
}

FINGERPRINT = 16  # characters


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    asked = window.read(request.GET, clock.now())
    result = request.GET.get("result", "")
    result = result if result in RESULTS else ""
    fingerprint = request.GET.get("fingerprint", "").replace("\0", "")[:FINGERPRINT]
    took = _took(request.GET)
    found, problem = None, ""
    try:
        found = finished.newest(asked.asked, result, fingerprint=fingerprint, took=took)
    except finished.NotReadable as error:
        problem = str(error)
    about = {
        "window": asked,
        "found": found,
        "within": finished.WITHIN,
        "problem": problem,
        "result": result,
        "fingerprint": fingerprint,
        "took": took,
        "took_words": f"{MEASURE_WORDS[took.measure]}, {bands.words(took.band)}" if took else "",
        "results": RESULTS.items(),
        "freshness": Freshness(),
    }
    return render(request, "pgqueue_admin/finished/page.html", about)


def _took(query: QueryDict) -> finished.Took | None:
    """A cell of the heat map: a measure and the number of a band; anything else asks for nothing."""
    measure, band = query.get("m", ""), whole(query.get("band", ""), len(bands.ENDS))
    return finished.Took(measure, band) if measure in MEASURE_WORDS and band is not None else None


@require_safe
def message(request: HttpRequest, seq: int) -> HttpResponse:
    """``source`` and ``at`` of the address say of which table it is, and when it ended."""
    found, problem = None, ""
    at = window.instant(request.GET.get("at", ""))
    if at and whole(str(seq)) is not None:
        try:
            found = finished.one(request.GET.get("source", ""), seq, at)
        except finished.NotReadable as error:
            problem = str(error)
    if found is None:
        about = {"problem": problem, "seq": seq}
        return render(request, "pgqueue_admin/finished/missing.html", about, status=200 if problem else 404)
    known = facts.of_finished(found)
    shown = body.of_finished(found, known.content_type, request.GET.dict())
    about = {"message": found, "facts": known, "body": shown, "word": RESULTS.get(found.result, found.result)}
    return render(request, "pgqueue_admin/finished/message.html", about | _became(found))


def _became(message: finished.Finished) -> dict[str, Any]:
    """Read beside the message: where that fails, all else is still shown."""
    try:
        known = became.of(message)
        numbers = [event.operation for event in known.events] if known else []
        return {"became": known, "within": finished.WITHIN, "started_here": service.started_here(numbers)}
    except finished.NotReadable as error:
        return {"became_unknown": str(error)}


urlpatterns = [
    path("trends/messages/", page, name="finished"),
    path("trends/messages/<int:seq>/", message, name="finished_message"),
]
