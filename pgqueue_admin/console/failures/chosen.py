"""Several failures at once, named in the URL as ``f=…&f=…``: retried together, or each assigned or acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive import failure_groups
from pgqueue_admin.archive.fingerprints import are_kept
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.archive.tokens import MOST_WORDS
from pgqueue_admin.console.failures import rows
from pgqueue_admin.console.failures.forms import AssignmentForm, FailureAcknowledgementForm
from pgqueue_admin.console.failures.rows import FailureRow
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.fingerprint import is_fingerprint
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import database_clock
from pgqueue_admin.models.failure_group import words_of
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access
from pgqueue_admin.services import failure_groups as groups
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.failure_groups import Assignment, FailureActRefused


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    digests = list(dict.fromkeys(each for each in request.GET.getlist("f") if is_fingerprint(each)))[: rows.PAGE]
    acknowledges = request.POST.get("act") == "acknowledge"
    given = request.POST if request.method == "POST" else None
    assign = AssignmentForm(None if acknowledges else given)
    acknowledge = FailureAcknowledgementForm(given if acknowledges else None)
    if given is not None and digests and (act := _act(request, assign, acknowledge, acknowledges)):
        return _each(request, digests, act, "acknowledged" if acknowledges else "assigned")
    return _asked(request, digests, assign, acknowledge)


MOST_RETRIED = MOST_WORDS - 1  # failures in one search, besides its term for the state
Act = Callable[[Connection, str], Any]


def _act(
    request: HttpRequest, assign: AssignmentForm, acknowledge: FailureAcknowledgementForm, acknowledges: bool
) -> Act | None:
    """None if the form has an error to show."""
    person = request.user
    if acknowledges:
        if not acknowledge.is_valid():
            return None
        end, reason = acknowledge.end, acknowledge.cleaned_data["reason"]
        return lambda connection, each: groups.acknowledge(connection, each, end, person, "console", reason)
    if not assign.is_valid():
        return None
    said = _what_is_given(assign.said)
    if said == Assignment():
        assign.add_error(None, "Nothing was changed. Give an owner, a ticket or a note.")
        return None
    return lambda connection, each: groups.assign(connection, each, said, person, "console")


def _what_is_given(said: Assignment) -> Assignment:
    """A field left empty does not change any of the failures."""
    return replace(said, owner=said.owner or None, ticket=said.ticket or None, note=said.note or None)


def _each(request: HttpRequest, digests: Sequence[str], act: Act, past: str) -> HttpResponse:
    done, refused = 0, dict[str, None]()
    try:
        with queue_database().read_session() as connection:
            for each in digests:
                try:
                    act(connection, each)
                    done += 1
                except FailureActRefused as error:
                    refused[str(error)] = None
    except DatabaseError as error:
        responses.failed(request, f"{pluralize(done, 'failure')} {past}, the others were not. {error}")
        return responses.SeeOther(reverse("failures"))
    if done:
        chosen = urlencode([("f", each) for each in digests])
        responses.done(
            request, f"{pluralize(done, 'failure')} {past}.", Way("See them", f"{reverse('failures_chosen')}?{chosen}")
        )
    for sentence in refused:
        responses.refused(request, sentence)
    return responses.SeeOther(reverse("failures"))


def _asked(
    request: HttpRequest, digests: Sequence[str], assign: AssignmentForm, acknowledge: FailureAcknowledgementForm
) -> HttpResponse:
    access = content_access.of(request.user)
    found, problem = query_errors.read(lambda connection: _read(connection, digests, access))
    chosen, acted_on = found or ([], 0)
    reach = None if acted_on else rows.ONLY_LOOKS
    about = {
        "rows": chosen,
        "dead": sum(row.figures.dead for row in chosen),
        "acted_on": acted_on,
        "looked_at": sum(row.figures.dead for row in chosen) - acted_on,
        "gone": len(digests) - len(chosen),
        "trouble": problem,
        "assign": assign,
        "acknowledge": acknowledge,
        "refusal": groups.refusal(request.user),
        "retry_refusal": permissions.refusal_on_page(request.user, "retry") or reach,
        "most_retried": MOST_RETRIED,
        "q": _search([row.fingerprint for row in chosen]),
    }
    return render(request, "pgqueue_admin/failures/chosen.html", about)


def _search(digests: Sequence[str]) -> str:
    """The search for all their dead messages, for one operation; empty if they are too many for one search."""
    if not digests or len(digests) > MOST_RETRIED:
        return ""
    return f"state:dead ({' OR '.join(f'fp:{each}' for each in digests)})"


def _read(connection: Connection, digests: Sequence[str], access: ContentAccess) -> tuple[list[FailureRow], int]:
    """The failures, and how many of their dead messages this person may act on."""
    if not digests or not are_kept(connection):
        return [], 0
    now, known = database_clock.now(), words_of(digests)
    found = {each.fingerprint: each for each in failure_groups.some(connection, digests) if each.dead}
    figures = [found[each] for each in digests if each in found]
    chosen = rows.several(connection, figures, known, now, access)
    return chosen, rows.acted_on(connection, chosen)
