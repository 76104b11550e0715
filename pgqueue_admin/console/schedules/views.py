"""What is sent by the clock, did it run, when next? The list, and one of them with its form."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pgqueue_admin.console import filter_syntax, permissions, query_errors, responses
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.query_errors import QueryError
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.schedules import expression_preview, rows
from pgqueue_admin.console.schedules.form import ScheduleForm
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.lease.errors import ScheduleRefused
from pgqueue_admin.models import database_clock
from pgqueue_admin.services import schedules
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.services.permissions import Refusal
from pgqueue_admin.services.schedules import Act, NoSuchSchedule, ScheduleDraft, SchedulesMissing

HISTORY = 20


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    missing = False
    try:
        found, problem = query_errors.read(rows.load)
    except SchedulesMissing:
        found, problem, missing = None, None, True
    all_of_them, looked = found or ([], None)
    wanted = filter_syntax.read(request.GET.get("q", ""), rows.FIELDS)
    state, sentence = rows.verdict(all_of_them)
    about = {
        "all": all_of_them,
        "rows": [] if wanted.faults else rows.matching(all_of_them, wanted),
        "looked": looked if visible_queues.current() is None else None,
        "planned_until": rows.planned_until(all_of_them),
        "filter": wanted,
        "missing": missing,
        "trouble": problem,
        "verdict": "Schedules cannot be read now" if problem else sentence,
        "verdict_state": "warn" if problem else state,
        "refusal": _refusal(request),
    }
    return render(request, "pgqueue_admin/schedules/page.html", about)


def _refusal(request: HttpRequest) -> Refusal | str | None:
    """Why this person cannot add one."""
    known, seen = permissions.refusal_on_page(request.user, "schedule"), visible_queues.current()
    return known or (
        "needs a group that may act on a queue: yours may only look" if seen and not seen.acted_on else None
    )


@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _save(request, ScheduleForm(request.POST), None)
    return _form_page(request, ScheduleForm(), None)


@require_http_methods(["GET", "HEAD", "POST"])
def schedule(request: HttpRequest, schedule_id: int) -> HttpResponse:
    found, problem = _existing(schedule_id)
    if found is None:
        return _unread(request, problem)
    if request.method == "POST":
        return _save(request, ScheduleForm(request.POST, found["draft"]), found)
    return _form_page(request, ScheduleForm(saved=found["draft"]), found)


@require_POST
def read(request: HttpRequest) -> HttpResponse:
    """Preview the typed schedule in words; nothing is saved."""
    about = {"preview": expression_preview.preview(ScheduleForm(request.POST), database_clock.now())}
    return render(request, "pgqueue_admin/schedules/preview.html", about)


def _save(request: HttpRequest, form: ScheduleForm, found: dict[str, Any] | None) -> HttpResponse:
    if refusal := permissions.refusal_on_page(request.user, "schedule"):
        responses.refused(request, f"Nothing was changed: {refusal}.")
        return responses.SeeOther(request.path)
    if "look" in request.POST:
        return _form_page(request, form, found)
    if not form.is_valid():
        return _form_page(request, form, found, 422)
    try:
        return _saved(request, form.draft, found)
    except ScheduleRefused as error:
        form.refuse(error)
        return _form_page(request, form, found, 422)
    except (ActRefused, DatabaseError) as error:
        form.add_error(None, f"Nothing was changed. {error}".replace("Nothing was changed. Nothing", "Nothing"))
        return _form_page(request, form, found, 422)


def _saved(request: HttpRequest, draft: ScheduleDraft, found: dict[str, Any] | None) -> HttpResponse:
    act = Act(request.user, "console", responses.reason(request), parse_int(request.POST.get("version")))
    if found:
        schedules.save(found["row"].of.id, draft, act)
        said, saved = f"{draft.name} is changed.", found["row"].of.id
    else:
        saved = schedules.add(draft, act)
        said = f"{draft.name} is saved."
    responses.done(request, said, Way("See it", reverse("schedule", args=[saved])))
    return responses.SeeOther(reverse("schedules"))


def _existing(schedule_id: int) -> tuple[dict[str, Any] | None, QueryError | None]:
    """Its row, what it sends, and its last runs, or why they cannot be read. Raises Http404."""

    def work(connection: Connection) -> dict[str, Any]:
        store = schedules.store_of(connection)
        listed = schedules.listed(connection, store, schedule_id)
        if not listed:
            raise NoSuchSchedule(schedule_id)
        now, past = store.now(connection), schedules.past(connection, store, schedule_id)
        waits = rows.still_waiting(connection, [*listed, *past])
        row = rows.ScheduleRow(listed[0], now, waits.get(listed[0].row_id))
        runs = [(run, rows.said_day(run.local_due), rows.of_run(run, waits.get(run.row_id))) for run in past]
        return {"row": row, "draft": schedules.draft_of(connection, store, row.of), "past": runs}

    try:
        return query_errors.read(work)
    except ActRefused as error:
        raise Http404(str(error).removeprefix("Nothing was changed. ")) from error


def _unread(request: HttpRequest, problem: QueryError | None) -> HttpResponse:
    """Show why; what was typed stays on the page, to be saved when the database is back."""
    if request.method == "POST":
        return _form_page(request, ScheduleForm(request.POST), None, 422, problem)
    about = {"trouble": problem}
    return render(request, "pgqueue_admin/schedules/schedule.html", about, status=problem.status if problem else 200)


def _form_page(
    request: HttpRequest,
    form: ScheduleForm,
    found: dict[str, Any] | None,
    status: int = 200,
    trouble: QueryError | None = None,
) -> HttpResponse:
    about = {
        "form": form,
        "trouble": trouble,
        "preview": expression_preview.preview(form, database_clock.now()),
        "refusal": _refusal(request) or (found["row"].refusal if found else None),
        "version": request.POST.get("version") or (found["row"].of.version if found else ""),
        "history": schedules.history(found["row"].of.name)[:HISTORY] if found else (),
        **(found or {}),
    }
    return render(request, "pgqueue_admin/schedules/schedule.html", about, status=status)


urlpatterns = [
    path("schedules/", page, name="schedules"),
    path("schedules/new/", new, name="schedule_new"),
    path("schedules/read/", read, name="schedule_read"),
    path("schedules/<int:schedule_id>/", schedule, name="schedule"),
]
