"""Failures: the list of groups, one group, and what people record about it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive import failure_groups, search_query, text_search
from pgqueue_admin.archive.fingerprints import are_kept
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.console import pagination, permissions, query_errors, responses
from pgqueue_admin.console.archive import search, window
from pgqueue_admin.console.archive.coverage import CoverageLine, coverage_line
from pgqueue_admin.console.failures import chosen, detail, rows
from pgqueue_admin.console.failures.forms import AssignmentForm, FailureAcknowledgementForm
from pgqueue_admin.console.messages import columns
from pgqueue_admin.console.messages.detail import archive_rows
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.saved_views import links
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.fingerprint import is_fingerprint
from pgqueue_admin.formatting.numbers import CAPPED, COUNTED, format_int
from pgqueue_admin.models import FailureGroup, database_clock
from pgqueue_admin.models.failure_group import FailureWords, of_teams, words_of
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access
from pgqueue_admin.services import failure_groups as groups
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.failure_groups import FailureActRefused, NoSuchFailure
from pgqueue_admin.services.trials import MOST

BY = {"cause": "Cause", "type": "Type", "queue": "Queue", "endpoint": "Endpoint"}
NAMES = 200
NOT_SEEN = "There is no such failure in the queues that you may see."
NOTHING_SAID = "The archive has no message of this failure, and nobody has said anything of it."


@require_safe
@links.opens_with_default("failures")
def page(request: HttpRequest) -> HttpResponse:
    query = search.read(request.GET.get("q", ""), content_access.of(request.user))
    if query.filter.state not in ("", "dead"):
        wrong = search.SearchSyntaxError(f"state:{query.filter.state}", "groups are of messages that are dead.")
        query = replace(query, error=wrong)
    by = request.GET.get("by", "cause")
    by = by if by in BY else "cause"
    found, covered, problem, milliseconds = None, None, None, 0
    if not query.error:
        started = perf_counter()
        look = partial(_look, request=request, query=query, by=by)
        looked, problem = query_errors.read(look, searching=query.reads_rows)
        found, covered = looked or (None, None)
        milliseconds = round((perf_counter() - started) * 1000)
    about = {
        "query": query,
        "links": links.of(request, "failures"),
        "found": found if isinstance(found, rows.FailureList) else None,
        "names": found[:NAMES] if isinstance(found, list) else None,
        "more_names": isinstance(found, list) and len(found) > NAMES,
        "how": _how(found),
        "cap": settings.PGQUEUE["CAP"],
        "live": _followed(found, query.filter),
        "is_old": found is False,
        "trouble": problem,
        "by": by,
        "ways": list(BY.items()),
        "covered": covered,
        "so_far": covered.coverage.so_far if covered else "",
        "state": _state(request),
        "owner": request.GET.get("owner", ""),
        "retried": _retried(request),
        "milliseconds": milliseconds,
        "alert_to": settings.PGQUEUE["ALERT_TO"],
        "own_code": settings.PGQUEUE["OWN_CODE"],
        "refusal": groups.refusal(request.user) and permissions.refusal_on_page(request.user, "retry"),
    }
    return render(request, "pgqueue_admin/failures/page.html", about)


class Covered(NamedTuple):
    """What a text search has covered."""

    coverage: CoverageLine
    is_by_index: bool


def _look(
    connection: Connection, request: HttpRequest, query: search.ArchiveSearch, by: str
) -> tuple[Any, Covered | None]:
    """The dead messages that the search finds. Texts are searched as in the archive: so many messages, for so long."""
    if not query.reads_rows or not are_kept(connection):
        return _read(connection, request, query.filter, by), None
    query = replace(query, filter=replace(query.filter, state="dead"))
    looked = text_search.look_through(connection, query.filter, window.unpack(request.GET.get("from")) or ())
    line = coverage_line(looked, query, text_search.estimate(connection))
    found = _read(connection, request, ArchiveFilter(ids=looked.ids), by, query.filter)
    return found, Covered(line, looked.is_by_index)


def _read(
    connection: Connection, request: HttpRequest, asked: ArchiveFilter, by: str, typed: ArchiveFilter | None = None
) -> Any:
    """The failures, or dead messages by another name, each with its search; False if the archive has no fingerprints.

    ``typed``: the search as typed, if its texts were searched first.
    """
    if not are_kept(connection):
        return False
    asked = replace(asked, state="")
    if by != "cause":
        named = failure_groups.by_name(connection, by, asked, NAMES + 1, settings.PGQUEUE["CAP"])
        typed = replace(typed or asked, state="")
        return [(each, _search_of(typed, by, each.name)) for each in named]
    start = max(0, pagination.integer(request.GET.get("after")) or 0)
    owner = request.GET.get("owner", "").replace("\0", "")
    now, state = database_clock.now(), _state(request)
    return rows.read(
        connection,
        rows.searched(asked),
        now,
        access=content_access.of(request.user),
        state=state,
        owner=owner,
        retried=_retried(request),
        start=start,
    )


def _how(found: Any) -> str:
    """Counts of names are lower bounds if only the newest messages were counted."""
    return CAPPED if isinstance(found, list) and any(each.more for each, _ in found) else COUNTED


def _followed(found: Any, asked: ArchiveFilter) -> str:
    """The failures that the page follows, if it counts all their dead messages; the counts of a search stay fixed."""
    if not isinstance(found, rows.FailureList) or rows.searched(replace(asked, state="")):
        return ""
    return ",".join(row.fingerprint for row in (*found.open, *found.acknowledged))


def _state(request: HttpRequest) -> str:
    state = request.GET.get("state", "")
    return state if state in failure_groups.STATES else ""


def _retried(request: HttpRequest) -> str:
    retried = request.GET.get("retried", "")
    return retried if retried in rows.RETRIED else ""


def _search_of(asked: ArchiveFilter, by: str, name: str) -> str:
    """The search with this name alone; "" for messages without an endpoint, which no search finds."""
    if by == "endpoint":
        return search_query.written(replace(asked, endpoint=name)) if name else ""
    if by == "queue":
        return f"{search_query.written(replace(asked, queue=''))} {search_query.died_in(name)}".strip()
    return search_query.written(replace(asked, type="", type_from="", type_is=name))


@require_safe
def one(request: HttpRequest, fingerprint: str) -> HttpResponse:
    _exists(fingerprint)
    return _page_of(request, fingerprint)


@require_POST
def assignment(request: HttpRequest, fingerprint: str) -> HttpResponse:
    """Set owner, ticket and note; with ``take``, the person becomes the owner."""
    _exists(fingerprint)
    takes = "take" in request.POST
    form = AssignmentForm(request.POST)
    if not takes and not form.is_valid():
        return _page_of(request, fingerprint, assign=form)
    said = groups.Assignment(owner=request.user.get_username()) if takes else form.said
    return _act(
        request,
        fingerprint,
        lambda connection: groups.assign(connection, fingerprint, said, request.user, "console"),
        "Its owner is you." if takes else "Kept with this failure, also through retries.",
    )


@require_POST
def acknowledgement(request: HttpRequest, fingerprint: str) -> HttpResponse:
    """Acknowledge the failure, or withdraw its acknowledgement."""
    _exists(fingerprint)
    if "withdraw" in request.POST:
        said = "Put back among the open failures."
        return _act(
            request,
            fingerprint,
            lambda connection: groups.withdraw(connection, fingerprint, request.user, "console"),
            said,
        )
    form = FailureAcknowledgementForm(request.POST)
    if not form.is_valid():
        return _page_of(request, fingerprint, acknowledge=form)
    end, reason = form.end, form.cleaned_data["reason"]
    count = f"Acknowledged until {format_int(end.count)} are dead." if end.count else ""
    return _act(
        request,
        fingerprint,
        lambda connection: groups.acknowledge(connection, fingerprint, end, request.user, "console", reason),
        count or "Acknowledged. It opens again at its end, or at twice as many dead messages.",
        Way("Undo", reverse("failure_acknowledgement", args=[fingerprint]), {"withdraw": "yes"}),
    )


def _act(request: HttpRequest, fingerprint: str, act: Any, said: str, *ways: Way) -> HttpResponse:
    try:
        with queue_database().read_session() as connection:
            act(connection)
        responses.done(request, said, *ways)
    except NoSuchFailure as error:
        if visible_queues.current() is not None:
            raise Http404(NOT_SEEN) from error
        responses.refused(request, str(error))
    except FailureActRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was changed. {error}")
    return responses.back(request, reverse("failure", args=[fingerprint]))


def _exists(fingerprint: str) -> None:
    if not is_fingerprint(fingerprint):
        raise Http404("There is no such failure: it is named by 16 digits, 0 to 9 and a to f.")


def _page_of(
    request: HttpRequest,
    fingerprint: str,
    assign: AssignmentForm | None = None,
    acknowledge: FailureAcknowledgementForm | None = None,
) -> HttpResponse:
    known = words_of([fingerprint]).get(fingerprint)
    shown_of = request.GET.get("w", "24h")
    access = content_access.of(request.user)
    found, problem = query_errors.read(partial(_detail, fingerprint, known, shown_of, access))
    view, is_read = found or (None, False)
    if view is None and known is None and problem is None:
        raise Http404(NOT_SEEN if visible_queues.current() is not None else NOTHING_SAID)
    payload = columns.of_archive(request, [each.message.id for each in view.samples]) if view else None
    if view and payload:
        view = replace(view, samples=archive_rows.with_columns(view.samples, payload))
    unread = known if isinstance(known, FailureGroup) else rows.unnamed(fingerprint)
    about = {
        "fingerprint": fingerprint,
        "known": known,
        "cause": view.row.cause if view else access.failure(unread),
        "withheld": access.refusal,
        "trouble": problem,
        "is_read": is_read,
        "columns": payload,
        "kept_in_address": [("w", shown_of)] if shown_of != "24h" else [],
        "q": search_query.of_failure(fingerprint),
        "q_all": search_query.of_failure(fingerprint, ""),
        "assign": assign or AssignmentForm(initial=_said(known)),
        "acknowledge": acknowledge or FailureAcknowledgementForm(),
        "refusal": groups.refusal(request.user),
        "teams": of_teams([fingerprint]).get(fingerprint, ()),
        "here": reverse("failure", args=[fingerprint]),
        **_of_view(request, fingerprint, view),
    }
    return render(request, "pgqueue_admin/failures/failure.html", about)


def _detail(
    fingerprint: str, known: FailureWords | None, shown_of: str, access: ContentAccess, connection: Connection
) -> tuple[detail.FailureDetail | None, bool]:
    """The failure, and whether the archive has fingerprints to read it from."""
    if not are_kept(connection):
        return None, False
    return detail.read(connection, fingerprint, known, database_clock.now(), shown_of, access), True


def _of_view(request: HttpRequest, fingerprint: str, view: detail.FailureDetail | None) -> dict[str, Any]:
    """What the page says of the messages, and which acts it offers on them."""
    dead, acted_on = (view.row.figures.dead, view.acted_on) if view else (0, 0)
    reach = None if acted_on else rows.ONLY_LOOKS
    return {
        "view": view,
        "row": view.row if view else None,
        "tried": min(dead, MOST),
        "acted_on": acted_on,
        "looked_at": dead - acted_on,
        "retry_refusal": permissions.refusal_on_page(request.user, "retry") or reach,
        "discard_refusal": permissions.refusal_on_page(request.user, "discard") or reach,
        "elsewhere": _elsewhere(fingerprint, view.row.addresses) if view and addresses.is_open("retry_rules") else "",
    }


def _elsewhere(fingerprint: str, died_in: Sequence[Address]) -> str:
    """The form of a retry rule, which sends retries to another queue. It names their queue, if there is only one."""
    queue = queue_database().dialect.canonical(died_in[0]) if len(died_in) == 1 else ""
    about = {"queue": queue, "next": reverse("failure", args=[fingerprint])}
    return f"{reverse('retry_rules')}?{urlencode(about)}#new"


def _said(known: FailureWords | None) -> dict[str, str]:
    return {name: getattr(known, name) for name in ("owner", "ticket", "note")} if known else {}


urlpatterns = [
    path("failures/", page, name="failures"),
    path("failures/chosen/", chosen.page, name="failures_chosen"),
    path("failures/<str:fingerprint>/", one, name="failure"),
    path("failures/<str:fingerprint>/assignment/", assignment, name="failure_assignment"),
    path("failures/<str:fingerprint>/acknowledgement/", acknowledgement, name="failure_acknowledgement"),
]
