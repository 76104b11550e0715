"""Every act on messages begins here: one message is acted on at once, many are frozen and looked at first (C4)."""

from django.db import ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive.model import Filter, Outcome
from pgqueue_admin.console import answers, archive_query, operation_words, paging
from pgqueue_admin.console.answers import Way
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.operations import service
from pgqueue_admin.records.models import Operation
from pgqueue_admin.wording import questions
from pgqueue_admin.wording.acts import past

ROWS = 50
MOST_IDS = 10_000
UNDO = {"discard": "restore", "restore": "discard"}


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _list(request)


def _list(request: HttpRequest) -> HttpResponse:
    below = paging.integer(request.GET.get("after"))
    found = Operation.objects.filter(pk__lt=below) if below is not None else Operation.objects.all()
    rows = list(found[: ROWS + 1])
    more = paging.pack(rows[ROWS - 1].pk) if len(rows) > ROWS else ""
    shown = [(row, operation_words.what(row)) for row in rows[:ROWS]]
    return render(request, "pgqueue_admin/operations/list.html", {"operations": shown, "more": more, "below": below})


def _create(request: HttpRequest) -> HttpResponse:
    """Freeze what was chosen and show it; a single message asked for at once is acted on."""
    kind = request.POST.get("act", "")
    if kind not in questions.VERBS:
        answers.refused(request, "Nothing was done: choose retry, discard or restore.")
        return answers.back(request, reverse("archive"))
    try:
        ids = _ids(request)
        if request.POST.get("at_once") and len(ids) == 1:
            return _at_once(request, kind, ids[0])
        return _freeze(request, kind, ids)
    except service.Refused as error:
        answers.refused(request, str(error))
    except (DatabaseError, ProgrammingError) as error:  # or the console's own database lacks a right or a table
        answers.failed(request, f"Nothing was {past(kind)}. {error}")
    return answers.back(request, reverse("archive"))


def _at_once(request: HttpRequest, kind: str, archive_id: int) -> HttpResponse:
    outcome = service.act(kind, archive_id, request.user, "console", answers.reason(request))
    said = operation_words.result(kind, outcome)
    if outcome.result == "done":
        answers.done(request, said, *_ways(kind, outcome))
    else:
        answers.refused(request, said)
    return answers.back(request, reverse("archived_message", args=[archive_id]))


def _ways(kind: str, outcome: Outcome) -> list[Way]:
    """What is put back into its queue is somebody else's from then on: a retry has no undo."""
    ways = [Way("See the message", reverse("archived_message", args=[outcome.archive_id]))]
    if outcome.operation:
        ways.append(Way(f"Operation {outcome.operation}", reverse("operation", args=[outcome.operation])))
    if undo := UNDO.get(kind):
        once_more = {"act": undo, "id": str(outcome.archive_id), "at_once": "yes"}
        ways.append(Way("Undo", reverse("operations"), once_more))
    return ways


def _freeze(request: HttpRequest, kind: str, ids: list[int]) -> HttpResponse:
    chosen: list[int] | Filter = ids
    selection = ""
    if request.POST.get("all") == "matching":
        selection = request.POST.get("q", "")
        chosen = _matching(kind, selection)
    elif not ids:
        raise service.NothingChosen(f"Nothing was {past(kind)}: no message was ticked.")
    operation = service.freeze(kind, chosen, request.user, "console", answers.reason(request), selection)
    return answers.SeeOther(reverse("operation", args=[operation.pk]))


def _matching(kind: str, q: str) -> Filter:
    query = archive_query.read(q)
    if query.error:
        raise service.Refused(f"Nothing was {past(kind)}: {query.error}")
    return query.filter


def _ids(request: HttpRequest) -> list[int]:
    given = (whole(each) for each in request.POST.getlist("id")[:MOST_IDS])
    return [each for each in given if each is not None]


urlpatterns = [path("operations/", page, name="operations")]
