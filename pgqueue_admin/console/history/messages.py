"""Which messages does this point of Trends count? The newest as a list, and each as history keeps it."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console.messages.detail import body, summary
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.trends import time_range
from pgqueue_admin.console.trends.page_data import MEASURE_WORDS
from pgqueue_admin.history.freshness import HistoryFreshness
from pgqueue_admin.history.rollups import latency_bands
from pgqueue_admin.history.storage import archive_events, message_lookup
from pgqueue_admin.models import database_clock
from pgqueue_admin.services import content_access
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.operations import queries

RESULTS = {
    "success": "Succeeded",
    "unsuccessful": "Not succeeded",
    "failed": "Failed",
    "rejected": "Rejected",
    "lock_expired": "Lock expired",
    "discarded": "Discarded",
}

FINGERPRINT = 16  # characters


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    asked = time_range.read(request.GET, database_clock.now())
    result = request.GET.get("result", "")
    result = result if result in RESULTS else ""
    fingerprint = request.GET.get("fingerprint", "").replace("\0", "")[:FINGERPRINT]
    took = _took(request.GET)
    found, problem = None, ""
    try:
        found = message_lookup.newest(asked.asked, result, fingerprint=fingerprint, took=took)
    except message_lookup.FilesUnreadable as error:
        problem = str(error)
    about = {
        "window": asked,
        "found": found,
        "within": message_lookup.WITHIN,
        "problem": problem,
        "result": result,
        "fingerprint": fingerprint,
        "took": took,
        "took_words": f"{MEASURE_WORDS[took.measure]}, {latency_bands.words(took.band)}" if took else "",
        "results": RESULTS.items(),
        "freshness": HistoryFreshness(),
    }
    return render(request, "pgqueue_admin/history/messages/page.html", about)


def _took(query: QueryDict) -> message_lookup.LookupTimings | None:
    """A cell of the heat map: a measure and the number of a band. None for anything else."""
    measure, band = query.get("m", ""), parse_int(query.get("band", ""), len(latency_bands.ENDS))
    return message_lookup.LookupTimings(measure, band) if measure in MEASURE_WORDS and band is not None else None


@require_safe
def message(request: HttpRequest, seq: int) -> HttpResponse:
    """``source`` and ``at`` in the URL name the message's table and when it ended."""
    found, problem = None, ""
    at = time_range.instant(request.GET.get("at", ""))
    if at and parse_int(str(seq)) is not None:
        try:
            found = message_lookup.one(request.GET.get("source", ""), seq, at)
        except message_lookup.FilesUnreadable as error:
            problem = str(error)
    if found is None:
        about = {"problem": problem, "seq": seq}
        return render(request, "pgqueue_admin/history/messages/missing.html", about, status=200 if problem else 404)
    access = content_access.of(request.user)
    reveals.opened(request.user, found.queue or "", f"history {found.source} {seq}", seq=seq)
    known = summary.of_finished(found, access)
    shown = body.of_finished(found, known, request.GET.dict())
    about = {
        "message": access.finished(found),
        "facts": known,
        "body": shown,
        "word": RESULTS.get(found.result, found.result),
    }
    return render(request, "pgqueue_admin/history/messages/message.html", about | _became(found))


def _became(message: message_lookup.FinishedMessage) -> dict[str, Any]:
    """What became of the message. Read separately: if that fails, all else is still shown."""
    try:
        known = archive_events.of(message)
        numbers = [event.operation for event in known.events] if known else []
        return {"became": known, "within": message_lookup.WITHIN, "started_here": queries.started_here(numbers)}
    except message_lookup.FilesUnreadable as error:
        return {"became_unknown": str(error)}


urlpatterns = [
    path("trends/messages/", page, name="finished"),
    path("trends/messages/<int:seq>/", message, name="finished_message"),
]
