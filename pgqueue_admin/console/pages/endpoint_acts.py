"""Start, stop, scale, pause, resume and undo: a view per verb, each one call to records."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_POST

from pgqueue_admin.console import access, answers, settings_words
from pgqueue_admin.console.numbers import whole
from pgqueue_admin.records import declarations, endpoints
from pgqueue_admin.records.endpoint_faults import MOST_PROCESSES
from pgqueue_admin.records.models import AuditEntry
from pgqueue_admin.wording.figures import counted


def act(right: str) -> Callable[[Callable[..., str]], Callable[..., HttpResponse]]:
    """A view of what does it and says so: the right, the act, its sentence, and back to where the person was."""

    def view_of(do: Callable[..., str]) -> Callable[..., HttpResponse]:
        @require_POST
        @wraps(do)
        def view(request: HttpRequest, name: str, **about: Any) -> HttpResponse:
            if refusal := access.may(request.user, right):
                answers.refused(request, f"Nothing was changed: {refusal}.")
            else:
                try:
                    answers.done(request, do(request, name, **about))
                except AuditEntry.DoesNotExist:
                    answers.refused(request, answers.NO_SUCH_CHANGE)
                except endpoints.ActRefused as error:
                    answers.refused(request, str(error))
            return answers.back(request, "endpoints")

        return view

    return view_of


@act("run")
def start(request: HttpRequest, name: str) -> str:
    row = endpoints.start(name, request.user, "console")
    return f"{name} starts: {counted(row.desired_processes, 'process', 'processes')} wanted, within 2 s."


@act("run")
def stop(request: HttpRequest, name: str) -> str:
    row = endpoints.stop(name, request.user, "console")
    within = settings_words.value("drain_seconds", row.drain_seconds)
    return f"{name} stops. What is in hand is finished within {within}."


@act("run")
def scale(request: HttpRequest, name: str) -> str:
    processes = whole(request.POST.get("processes", ""), MOST_PROCESSES)
    if not processes:
        given = f"Nothing was changed. Enter a number of processes from 1 to {MOST_PROCESSES}."
        raise endpoints.ActRefused(f"{given} Stop ends them all, and asks first.")
    endpoints.scale(name, processes, request.user, "console")
    return f"{name} is scaled to {counted(processes, 'process', 'processes')}, within 2 s."


@act("run")
def pause(request: HttpRequest, name: str) -> str:
    endpoints.pause(name, request.user, "console")
    return f"{name} is paused: its processes stay and receive nothing. Whoever else receives goes on."


@act("run")
def resume(request: HttpRequest, name: str) -> str:
    endpoints.resume(name, request.user, "console")
    return f"{name} receives again."


@act("set")
def undo(request: HttpRequest, name: str, entry_id: int) -> str:
    endpoints.undo(name, entry_id, request.user, "console")
    entry = AuditEntry.objects.get(pk=entry_id)
    return f"{name} is back: {settings_words.change(entry.after, entry.before)}."


@act("run")
def restart(request: HttpRequest, name: str) -> str:
    row = endpoints.restart(name, request.user, "console")
    count = counted(row.desired_processes, "process", "processes")
    return f"{name} restarts one by one: {count}, the next when the new one is well."


@act("set")
def withdraw(request: HttpRequest, name: str) -> str:
    declarations.withdraw(name, request.user, "console")
    return f"{name} is no longer declared. Nothing was changed where it runs."


urlpatterns = [
    path("endpoints/<name:name>/start/", start, name="endpoint_start"),
    path("endpoints/<name:name>/stop/", stop, name="endpoint_stop"),
    path("endpoints/<name:name>/scale/", scale, name="endpoint_scale"),
    path("endpoints/<name:name>/pause/", pause, name="endpoint_pause"),
    path("endpoints/<name:name>/resume/", resume, name="endpoint_resume"),
    path("endpoints/<name:name>/restart/", restart, name="endpoint_restart"),
    path("endpoints/<name:name>/withdraw/", withdraw, name="endpoint_withdraw"),
    path("endpoints/<name:name>/undo/<int:entry_id>/", undo, name="endpoint_undo"),
]
