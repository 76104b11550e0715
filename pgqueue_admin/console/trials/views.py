"""What would a retry do? Started here, run by a process of its own, and shown message by message."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.console.trials import chosen
from pgqueue_admin.console.trials.chosen import ChosenMessages
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import trials as words
from pgqueue_admin.models import Trial, TrialItem, processes
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access, trials
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.operations.errors import OperationRefused
from pgqueue_admin.services.trials import Candidate


@dataclass(frozen=True, slots=True)
class Question:
    """``endpoints``: how many messages each would try."""

    chosen: ChosenMessages
    endpoints: Sequence[tuple[str, int]]
    refused: Sequence[Candidate]

    @property
    def count(self) -> int:
        return sum(number for _, number in self.endpoints)


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _start(request)
    fault = ""
    found, problem = None, None
    try:
        found, problem = query_errors.read(lambda connection: _question(connection, request), searching=True)
    except OperationRefused as error:
        fault = str(error)
    about = {
        "found": found,
        "fault": fault,
        "trouble": problem,
        "not_covered": words.NOT_COVERED,
        "refusal": permissions.refusal_on_page(request.user, "try"),
        "has_supervisor": _has_supervisor(),
    }
    return render(request, "pgqueue_admin/trials/question.html", about)


def _question(connection: Connection, request: HttpRequest) -> Question:
    meant = chosen.read(connection, request.GET, content_access.of(request.user))
    found = trials.candidates(connection, meant.ids)
    endpoints = Counter(each.endpoint for each in found if not each.blocking_reason)
    return Question(meant, endpoints.most_common(), [each for each in found if each.blocking_reason])


def _start(request: HttpRequest) -> HttpResponse:
    try:
        with queue_database().read_session(searching=True) as connection:
            meant = chosen.read(connection, request.POST, content_access.of(request.user))
        trial = trials.start(
            meant.ids,
            request.user,
            "console",
            responses.reason(request),
            of=meant.of,
            selection=meant.selection,
            operation=meant.operation,
        )
    except OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was tried. {error}")
    else:
        return responses.SeeOther(reverse("trial", args=[trial.pk]))
    return responses.back(request, reverse("archive"))


@require_safe
def page(request: HttpRequest, number: int) -> HttpResponse:
    trial = existing(Trial, f"There is no trial {number}: trials are kept for 7 days.", pk=number)
    items = trials.results(trial)
    only = request.GET.get("o", "")
    access = content_access.of(request.user)
    about = {
        "trial": trial,
        "count": len(items),
        "sentence": words.sentence(items),
        "rows": [
            (_shown(each, access), *words.OUTCOMES[each.outcome]) for each in items if not only or each.outcome == only
        ],
        "only": only,
        "outcomes": [("", "all"), *_outcomes(items)],
        "moves": any(each.outcome == TrialItem.Outcome.WAITING for each in items),
        "has_supervisor": _has_supervisor(),
        "not_covered": words.NOT_COVERED,
        "withheld": access.refusal,
    }
    return render(request, "pgqueue_admin/trials/page.html", about)


def _shown(item: TrialItem, access: ContentAccess) -> TrialItem:
    """Mask what its handler raised, as in any error. Not for saving.

    Only the first of its types is stored, so the rules of all types apply.
    """
    if item.raised:
        item.why = access.error(item.why) or ""
    return item


def _outcomes(items: Sequence[TrialItem]) -> list[tuple[str, str]]:
    met = {each.outcome for each in items}
    return [(name, word) for name, (word, *_) in words.OUTCOMES.items() if name and name in met]


def _has_supervisor() -> bool:
    return processes.heard_of().filter(role="supervisor").exists()


urlpatterns = [
    path("trials/new/", new, name="trial_new"),
    path("trials/<int:number>/", page, name="trial"),
]
