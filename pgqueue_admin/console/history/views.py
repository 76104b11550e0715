"""Is history complete, and what does the last batch say?"""

from datetime import date

from django.conf import settings
from django.db.models import Count, Sum
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.alerts.kinds import history_stalled
from pgqueue_admin.console import navigation, permissions, responses
from pgqueue_admin.console.history.status import OFF, HistoryState
from pgqueue_admin.console.responses import Way
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.history.freshness import HistoryFreshness, rejections
from pgqueue_admin.history.runtime.installation import missing
from pgqueue_admin.history.storage.layout import folder
from pgqueue_admin.models import (
    HistoryBatch,
    HistoryCompaction,
    HistorySource,
    RecomputeRequest,
    database_clock,
    history_requests,
)

SHOWN = 30
COMPACTED = 5
RECOMPUTED = 10
_ANEW = "day to be counted again", "days to be counted again"
_NAME_DAYS = "Nothing is recomputed: name a first and a last day, as 2026-11-21."
_NO_FILES = "Nothing is recomputed: the history files hold no messages for these days."


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    navigation.stands_under(request, "trends")
    freshness = HistoryFreshness()
    reading = HistoryState(freshness)
    refusal = permissions.refusal_on_page(request.user, "run")
    about = {
        "freshness": freshness,
        "reading": reading,
        "notices": reading.notices(list(history_stalled.stalled(database_clock.now()))),
        "sources": HistorySource.objects.filter(exists=True).order_by("table"),
        "gone": HistorySource.objects.filter(exists=False).order_by("table"),
        "batches": HistoryBatch.objects.select_related("source").order_by("-planned_at")[:SHOWN],
        "compactions": HistoryCompaction.objects.select_related("source").order_by("-started_at")[:COMPACTED],
        "open": _open(),
        "then": _then(history_requests.going_on()),
        "days": RecomputeRequest.objects.order_by("-asked_at", "-day")[:RECOMPUTED],
        "rejected": rejections(),
        "days_kept": settings.PGQUEUE["HISTORY_RETENTION_DAYS"],
        "files": history_requests.files().aggregate(number=Count("id"), rows=Sum("rows"), bytes=Sum("bytes")),
        "others": history_requests.other_files().aggregate(number=Count("id"), bytes=Sum("bytes")),
        "folder": folder(),
        "missing": missing(),
        "refusal": refusal,
        "read_refusal": refusal or _off(reading),
    }
    return render(request, "pgqueue_admin/history/page.html", about)


def _off(reading: HistoryState) -> str:
    """Why nothing can be requested; empty: a process reads, or will after its next start."""
    return "history is switched off" if reading.why == OFF else ""


def _open() -> str:
    """What Cancel would end; empty if nothing is open."""
    found = history_requests.going_on()
    batches = [
        f"a batch of {pluralize(batch.rows, 'row')} of {batch.source.table}"
        for batch in found.batches.select_related("source").order_by("planned_at")
    ]
    days = [f"the compaction of {each.day:%Y-%m-%d}" for each in found.compactions.order_by("day")]
    anew = found.days.count()
    return ", ".join([*batches, *days, *([pluralize(anew, *_ANEW)] if anew else [])])


@require_POST
def run_now(request: HttpRequest) -> HttpResponse:
    refusal = permissions.refusal_on_page(request.user, "run")
    if why := refusal or _off(HistoryState(HistoryFreshness())):
        responses.refused(request, f"Nothing was asked for: {why}.")
    else:
        history_requests.read_now(request.user, "console")
        responses.done(request, "Asked for: messages finished until now are read next.")
    return responses.back(request, "history")


@require_POST
def cancel(request: HttpRequest) -> HttpResponse:
    if refusal := permissions.refusal_on_page(request.user, "run"):
        responses.refused(request, f"Nothing was cancelled: {refusal}.")
    elif said := _said(ended := history_requests.cancel(request.user, "console")):
        read_now = Way("Read now", reverse("history_run"), {})
        responses.done(request, f"Cancelled: {said}. Nothing is lost{_rests(ended)}.", read_now)
    else:
        responses.refused(request, "Nothing was cancelled: no batch is open.")
    return responses.back(request, "history")


def _then(found: history_requests.OpenWork) -> str:
    return _rests(history_requests.CancelResult(*(each.count() for each in found)))


def _rests(ended: history_requests.CancelResult) -> str:
    """What happens to the cancelled work."""
    then = [
        (ended.batches, "its table is read again in an hour, or after Read now"),
        (ended.compactions, "a day is compacted again in an hour"),
        (ended.days, "figures stay as they are, and are counted again when somebody asks once more"),
    ]
    return "".join(f"; {what}" for number, what in then if number)


def _said(ended: history_requests.CancelResult) -> str:
    names = ("batch", "batches"), ("compaction", "compactions"), _ANEW
    return ", ".join(pluralize(number, *name) for number, name in zip(ended, names, strict=True) if number)


@require_safe
def question(request: HttpRequest) -> HttpResponse:
    """Show which days would be recomputed, before they are."""
    navigation.stands_under(request, "trends")
    days = _days(request.GET)
    found = history_requests.recomputable(*days) if days else history_requests.RecomputeResult([], 0)
    about = {
        "days": found.days,
        "left": _left(found),
        "filed": history_requests.files().filter(day__in=found.days).aggregate(rows=Sum("rows"))["rows"] or 0,
        "problem": "" if found.days else _NO_FILES if days else _NAME_DAYS,
        "refusal": permissions.refusal_on_page(request.user, "run"),
    }
    return render(request, "pgqueue_admin/history/question.html", about)


@require_POST
def recompute(request: HttpRequest) -> HttpResponse:
    if refusal := permissions.refusal_on_page(request.user, "run"):
        responses.refused(request, f"Nothing is recomputed: {refusal}.")
    elif days := _days(request.POST):
        _recompute(request, *days)
    else:
        responses.refused(request, _NAME_DAYS)
    return responses.back(request, "history")


def _recompute(request: HttpRequest, since: date, until: date) -> None:
    found = history_requests.recompute(request.user, "console", since, until)
    left = f" {_left(found)}" if found.left_out else ""
    if found.days:
        responses.done(request, f"{pluralize(len(found.days), 'day')} will be counted again from the files.{left}")
    else:
        responses.refused(request, f"{_NO_FILES}{left}")


def _left(found: history_requests.RecomputeResult) -> str:
    if not found.left_out:
        return ""
    days = pluralize(found.left_out, "day is", "days are")
    whose = "its" if found.left_out == 1 else "their"
    return f"{days} left unchanged: some of {whose} messages are no longer in the files."


def _days(given: QueryDict) -> tuple[date, date] | None:
    since, until = (parsed_day(given.get(name, "")) for name in ("since", "until"))
    return (since, until) if since and until and since <= until else None


def parsed_day(text: str) -> date | None:
    try:
        return parse_date(text)
    except ValueError:
        return None


urlpatterns = [
    path("history/", page, name="history"),
    path("history/run/", run_now, name="history_run"),
    path("history/cancel/", cancel, name="history_cancel"),
    path("history/recompute/", recompute, name="history_recompute"),
    path("history/days/", question, name="history_days"),
]
