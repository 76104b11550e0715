"""Pause, resume, send once, remove: a view per verb, each one call to the service."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Said, Way
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.services import schedules
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.schedules import Act


def _act(do: Callable[[int, Act], Said], stays: bool = True) -> Callable[..., HttpResponse]:
    """A view that does an act and reports it. ``stays``: the schedule still has a page to return to."""

    @require_POST
    @wraps(do)
    def view(request: HttpRequest, schedule_id: int) -> HttpResponse:
        act = Act(request.user, "console", responses.reason(request), parse_int(request.POST.get("version")))
        if refusal := permissions.refusal_on_page(request.user, "schedule"):
            responses.refused(request, f"Nothing was changed: {refusal}.")
        else:
            try:
                said = do(schedule_id, act)
                responses.done(request, said.sentence, *said.ways)
            except ActRefused as error:
                responses.refused(request, str(error))
            except DatabaseError as error:
                problem = query_errors.plain(error)
                responses.failed(request, f"Nothing was changed. {problem.sentence} {problem.detail}".strip())
        return responses.back(request, "schedules") if stays else responses.SeeOther(reverse("schedules"))

    return view


def pause(schedule_id: int, act: Act) -> Said:
    schedules.pause(schedule_id, act)
    again = Way("Resume", reverse("schedule_resume", args=[schedule_id]), {})
    return Said("It is paused: its due times pass without a message.", (again,))


def resume(schedule_id: int, act: Act) -> Said:
    schedules.resume(schedule_id, act)
    again = Way("Pause again", reverse("schedule_pause", args=[schedule_id]), {})
    return Said("It is resumed. Due times that passed meanwhile are not sent.", (again,))


def run(schedule_id: int, act: Act) -> Said:
    schedules.run_now(schedule_id, act)
    see = Way("See it", reverse("schedule", args=[schedule_id]))
    return Said("It is sent once. The plan stays as it is.", (see,))


def remove(schedule_id: int, act: Act) -> Said:
    schedules.remove(schedule_id, act)
    return Said("It is removed. Messages that it has sent stay where they are.")


urlpatterns = [
    path("schedules/<int:schedule_id>/pause/", _act(pause), name="schedule_pause"),
    path("schedules/<int:schedule_id>/resume/", _act(resume), name="schedule_resume"),
    path("schedules/<int:schedule_id>/run/", _act(run), name="schedule_run"),
    path("schedules/<int:schedule_id>/remove/", _act(remove, stays=False), name="schedule_remove"),
]
