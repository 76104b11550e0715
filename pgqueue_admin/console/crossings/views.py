"""Messages between two databases whose arrival is not known: all, one, and what a person says became of it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive.crossings import AT_ONCE
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.crossings import rows
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting import crossings as crossing_words
from pgqueue_admin.models.queue_database import looked_at
from pgqueue_admin.services.operations import crossing_decision, crossings
from pgqueue_admin.services.operations.errors import OperationRefused


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    found, problem = query_errors.read(crossings.pending)
    listed = rows.of(found or [])
    undecided = [each for each in listed if each.is_undecided]
    going = [each for each in listed if not each.is_undecided]
    about = {
        "groups": [("undecided", undecided, len(undecided) >= AT_ONCE), ("going", going, len(going) >= AT_ONCE)],
        "crossings": listed,
        "trouble": problem,
        "writable": [each.alias for each in looked_at() if each.is_writable],
    }
    return render(request, "pgqueue_admin/crossings/page.html", about)


@require_safe
def crossing(request: HttpRequest, number: int) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: crossings.one_pending(connection, number))
    if found is None and problem is None:
        raise Http404(f"There is no crossing {number} any more: what became of it is known.")
    row = rows.of([found])[0] if found else None
    about = {"row": row, "trouble": problem, "refusal": permissions.refusal_on_page(request.user, "decide")}
    return render(request, "pgqueue_admin/crossings/crossing.html", about)


@require_POST
def decide(request: HttpRequest, number: int) -> HttpResponse:
    said = request.POST.get("decision", "")
    if said not in crossing_words.DECISIONS:
        responses.refused(request, "Nothing was decided: say whether it arrived or was lost.")
        return responses.SeeOther(_place(number))
    arrived = said == "arrived"
    try:
        done = crossing_decision.decide(number, arrived, request.user, "console", responses.reason(request))
    except OperationRefused as error:
        responses.refused(request, str(error))
        return responses.SeeOther(_place(number))
    except DatabaseError as error:
        responses.failed(request, f"Nothing was decided. {error}")
        return responses.SeeOther(_place(number))
    responses.done(request, crossing_words.decided(done, arrived))
    return responses.SeeOther(reverse("crossings"))


def _place(number: int) -> str:
    """Its page; the list where it is over."""
    found, _ = query_errors.read(lambda connection: crossings.one_pending(connection, number))
    return reverse("crossing", args=[number]) if found else reverse("crossings")


urlpatterns = [
    path("operations/crossings/", listing, name="crossings"),
    path("operations/crossings/<int:number>/", crossing, name="crossing"),
    path("operations/crossings/<int:number>/decide/", decide, name="crossing_decide"),
]
