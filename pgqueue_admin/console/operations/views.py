"""Every act on messages begins here: one message is acted on at once, many are frozen and previewed (C4)."""

from collections.abc import Callable
from dataclasses import replace

from django.db import ProgrammingError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter, Outcome
from pgqueue_admin.console import pagination, responses
from pgqueue_admin.console.archive import search, window
from pgqueue_admin.console.operations import labels
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import confirmations
from pgqueue_admin.formatting.audit_verbs import past
from pgqueue_admin.models import Operation, RetryRule
from pgqueue_admin.models.queue_database import looked_at, queue_database
from pgqueue_admin.services import content_access, purges
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations import call_back, redirects, single
from pgqueue_admin.services.operations.errors import EmptySelection, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.operations.selection import freeze, freeze_discarded

ROWS = 50
MOST_IDS = 10_000
NOT_COVERED = "this search reads texts, and what it has covered is not known. Search again, then act on what it found."
UNDO = {"discard": "restore", "restore": "discard"}


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    return _create(request) if request.method == "POST" else _list(request)


def _list(request: HttpRequest) -> HttpResponse:
    below = pagination.integer(request.GET.get("after"))
    found = Operation.objects.filter(pk__lt=below) if below is not None else Operation.objects.all()
    rows = list(found.select_related("plan")[: ROWS + 1])
    more = pagination.pack(rows[ROWS - 1].pk) if len(rows) > ROWS else ""
    shown = [(row, labels.what(row)) for row in rows[:ROWS]]
    about = {"operations": shown, "more": more, "below": below, "crossings": _has_crossings()}
    return render(request, "pgqueue_admin/operations/list.html", about)


def _has_crossings() -> bool:
    """Whether the page of crossings is of use here, and open to this person."""
    return addresses.is_open("crossings") and any(each.is_writable for each in looked_at())


def _create(request: HttpRequest) -> HttpResponse:
    """Freeze the chosen messages and show them; act on a single message at once if requested."""
    kind = request.POST.get("act", "")
    if kind not in confirmations.VERBS and kind not in PREPARED:
        responses.refused(request, "Nothing was done: choose retry, discard or restore.")
        return responses.back(request, reverse("archive"))
    try:
        if kind in PREPARED:
            return PREPARED[kind](request)
        ids = _ids(request)
        if request.POST.get("at_once") and len(ids) == 1:
            return _at_once(request, kind, ids[0])
        return _freeze(request, kind, ids)
    except OperationRefused as error:
        responses.refused(request, str(error))
    except OutcomeUnknown as error:
        responses.failed(request, str(error))
    except (DatabaseError, ProgrammingError) as error:  # or the console's own database lacks a right or a table
        responses.failed(request, f"Nothing was {past(kind)}. {error}")
    return responses.back(request, reverse("archive"))


def _at_once(request: HttpRequest, kind: str, archive_id: int) -> HttpResponse:
    if kind == Operation.Kind.RETRY and _is_ruled(archive_id):
        return _freeze(request, kind, [archive_id])  # a rule is shown before it is applied
    outcome = single.act(kind, archive_id, request.user, "console", responses.reason(request))
    said = labels.result(kind, outcome)
    if outcome.result == "done":
        responses.done(request, said, *_ways(kind, outcome))
    else:
        responses.refused(request, said)
    return responses.back(request, reverse("archived_message", args=[archive_id]))


def _is_ruled(archive_id: int) -> bool:
    if not RetryRule.objects.exists():
        return False
    with queue_database().read_session() as connection:
        found = store.followed(connection, archive_id)
    return found is not None and found.state == "dead" and redirects.applies(found.message_type, found.queue)


def _ways(kind: str, outcome: Outcome) -> list[Way]:
    """Links after an act. A retry has no undo: the message in its queue belongs to its receiver."""
    ways = [Way("See the message", reverse("archived_message", args=[outcome.archive_id]))]
    if outcome.operation:
        ways.append(Way(f"Operation {outcome.operation}", reverse("operation", args=[outcome.operation])))
    if undo := UNDO.get(kind):
        once_more = {"act": undo, "id": str(outcome.archive_id), "at_once": "yes"}
        ways.append(Way("Undo", reverse("operations"), once_more))
    return ways


def _call_back(request: HttpRequest) -> HttpResponse:
    number = parse_int(request.POST.get("operation", "")) or 0
    operation = call_back.prepare(number, request.user, "console", responses.reason(request))
    return responses.SeeOther(reverse("operation", args=[operation.pk]))


def _purge(request: HttpRequest) -> HttpResponse:
    queue = Address(request.POST.get("schema", ""), request.POST.get("table", ""))
    operation = purges.prepare(queue, request.user, "console", responses.reason(request))
    return responses.SeeOther(reverse("operation", args=[operation.pk]))


def _from_bin(request: HttpRequest) -> HttpResponse:
    ids = _ids(request)
    if not ids:
        raise EmptySelection("Nothing was retried: no message was ticked.")
    operation = freeze_discarded(ids, request.user, "console", responses.reason(request))
    return responses.SeeOther(reverse("operation", args=[operation.pk]))


def _edit(request: HttpRequest) -> HttpResponse:
    """Freeze a retry, then open the page that edits its messages."""
    frozen = _frozen(request, Operation.Kind.RETRY, _ids(request))
    return responses.SeeOther(reverse("operation_edit", args=[frozen.pk]))


FROM_BIN, EDIT = "restore and retry", "edit and retry"
PREPARED: dict[str, Callable[[HttpRequest], HttpResponse]] = {
    call_back.KIND: _call_back,
    purges.KIND: _purge,
    FROM_BIN: _from_bin,
    EDIT: _edit,
}


def _freeze(request: HttpRequest, kind: str, ids: list[int]) -> HttpResponse:
    return responses.SeeOther(reverse("operation", args=[_frozen(request, kind, ids).pk]))


def _frozen(request: HttpRequest, kind: str, ids: list[int]) -> Operation:
    chosen: list[int] | ArchiveFilter = ids
    selection = ""
    if request.POST.get("all") == "matching":
        selection = request.POST.get("q", "")
        chosen, covered = _matching(kind, selection, request.POST.get("w"), content_access.of(request.user))
        selection += covered
    elif not ids:
        raise EmptySelection(f"Nothing was {past(kind)}: no message was ticked.")
    return freeze(kind, chosen, request.user, "console", responses.reason(request), selection)


def _matching(kind: str, q: str, w: str | None, access: ContentAccess) -> tuple[ArchiveFilter, str]:
    """The filter of a search. If it reads texts: limited to the rows it covered, which are also returned as terms."""
    query = search.read(q, access)
    if query.error:
        raise OperationRefused(f"Nothing was {past(kind)}: {query.error}")
    if not query.reads_rows:
        return query.filter, ""
    covered = window.unpack(w)
    if covered is None:
        raise OperationRefused(f"Nothing was {past(kind)}: {NOT_COVERED}")
    state = "discarded" if kind == "restore" else "dead"
    return replace(query.filter, window=covered), window.covered(covered, state)


def _ids(request: HttpRequest) -> list[int]:
    given = (parse_int(each) for each in request.POST.getlist("id")[:MOST_IDS])
    return [each for each in given if each is not None]


urlpatterns = [path("operations/", page, name="operations")]
