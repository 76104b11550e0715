"""Start, stop, scale, pause, resume, restart, withdraw and undo: a view per verb, each with its audit entry."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.views.decorators.http import require_POST

from pgqueue_admin.console import permissions, responses
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.console.responses import Said, Way
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import AuditEntry, Endpoint, settings_words
from pgqueue_admin.models.endpoint_validation import MOST_PROCESSES
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import endpoint_change, endpoints


def act(right: str) -> Callable[[Callable[..., Said]], Callable[..., HttpResponse]]:
    """Make an action a view: check the right, run the action, show its sentence, return to the previous page."""

    def view_of(do: Callable[..., Said]) -> Callable[..., HttpResponse]:
        @require_POST
        @wraps(do)
        def view(request: HttpRequest, name: str, **about: Any) -> HttpResponse:
            if refusal := permissions.refusal_on_page(request.user, right):
                responses.refused(request, f"Nothing was changed: {refusal}.")
            else:
                try:
                    said = do(request, name, **about)
                    responses.done(request, said.sentence, *said.ways)
                except AuditEntry.DoesNotExist:
                    responses.refused(request, responses.NO_SUCH_CHANGE)
                except endpoint_change.ActRefused as error:
                    responses.refused(request, str(error))
            return responses.back(request, "endpoints")

        return view

    return view_of


@act("run")
def start(request: HttpRequest, name: str) -> Said:
    before = _wanted(name)
    row = endpoints.start(name, request.user, "console")
    count = pluralize(row.desired_processes, "process", "processes")
    undo = () if before else (_post("Undo", "endpoint_stop", name),)
    return Said(f"{name} starts: {count} wanted, within 2 s.", (_processes(name), *undo))


@act("run")
def stop(request: HttpRequest, name: str) -> Said:
    before = _wanted(name)
    row = endpoints.stop(name, request.user, "console")
    within = settings_words.value("drain_seconds", row.drain_seconds)
    sentence = f"{name} stops. Messages in flight are finished within {within}."
    return Said(sentence, (_processes(name), *_scaled_back(name, before)))


@act("run")
def scale(request: HttpRequest, name: str) -> Said:
    processes = parse_int(request.POST.get("processes", ""), MOST_PROCESSES)
    if not processes:
        given = f"Nothing was changed. Enter a number of processes from 1 to {MOST_PROCESSES}."
        raise endpoint_change.ActRefused(f"{given} Stop ends them all, and asks first.")
    before = _wanted(name)
    endpoints.scale(name, processes, request.user, "console")
    sentence = f"{name} is scaled to {pluralize(processes, 'process', 'processes')}, within 2 s."
    undo = (_post("Undo", "endpoint_stop", name),) if before == 0 else _scaled_back(name, before)
    return Said(sentence, (_processes(name), *(undo if before != processes else ())))


@act("run")
def pause(request: HttpRequest, name: str) -> Said:
    endpoints.pause(name, request.user, "console")
    sentence = f"{name} is paused: its processes stay and receive nothing. Other receivers go on."
    return Said(sentence, (_processes(name), _post("Resume", "endpoint_resume", name)))


@act("run")
def resume(request: HttpRequest, name: str) -> Said:
    endpoints.resume(name, request.user, "console")
    return Said(f"{name} receives again.", (_processes(name), _post("Pause again", "endpoint_pause", name)))


@act("set")
def undo(request: HttpRequest, name: str, entry_id: int) -> Said:
    endpoints.undo(name, entry_id, request.user, "console")
    entry = AuditEntry.objects.get(pk=entry_id)
    return Said(f"{name} is back: {settings_words.change(entry.after, entry.before)}.", settings_changed(name))


@act("run")
def restart(request: HttpRequest, name: str) -> Said:
    row = endpoints.restart(name, request.user, "console")
    count = pluralize(row.desired_processes, "process", "processes")
    sentence = f"{name} restarts one by one: {count}, the next when the new one is well."
    return Said(sentence, (_processes(name),))


@act("set")
def withdraw(request: HttpRequest, name: str) -> Said:
    row = Endpoint.objects.filter(name=name, ours=False).first()
    endpoints.withdraw(name, request.user, "console")
    return Said(f"{name} is no longer declared. Nothing was changed where it runs.", _declared_again(row))


def settings_changed(name: str) -> tuple[Way, ...]:
    """Links to the history, and to undo its newest change."""
    last = endpoint_change.history(name).first()
    history = Way("History", f"{_page(name)}#history")
    return (history, Way("Undo", reverse("endpoint_undo", args=[name, last.pk]), {})) if last else (history,)


def _declared_again(row: Endpoint | None) -> tuple[Way, ...]:
    if row is None:
        return ()
    queue = queue_database().dialect.canonical(Address(row.schema, row.table))
    told = {"name": row.name, "queue": queue, "peek_delay_ms": f"{row.peek_delay_ms} ms"}
    return (Way("Declare again", reverse("endpoints"), told),)


def _wanted(name: str) -> int | None:
    """How many processes were wanted before the action."""
    found: int | None = Endpoint.objects.filter(name=name).values_list("desired_processes", flat=True).first()
    return found


def _scaled_back(name: str, before: int | None) -> tuple[Way, ...]:
    return (_post("Undo", "endpoint_scale", name, processes=str(before)),) if before else ()


def _processes(name: str) -> Way:
    return Way("See its processes", f"{_page(name)}#processes")


def _post(word: str, view: str, name: str, **fields: str) -> Way:
    return Way(word, reverse(view, args=[name]), fields)


def _page(name: str) -> str:
    return reverse("endpoint", args=[name])


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
