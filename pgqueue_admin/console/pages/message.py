"""What is this message, what happened to it, what may I do? One page for those that wait and for archived ones."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.archive.model import ArchivedMessage
from pgqueue_admin.console import navigation, trouble
from pgqueue_admin.console.reading import acts, body, error, facts, following, kept_back, neighbours, reasons, timeline
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.monitor.tables import Kind, QueueTable
from pgqueue_admin.operations import service
from pgqueue_admin.operations.targets import Target, judge
from pgqueue_admin.records import clock
from pgqueue_admin.records.source import source

TEMPLATE = "pgqueue_admin/message/page.html"


class Waiting(NamedTuple):
    facts: facts.Facts
    body: body.Shown
    topic: str


class Archived(NamedTuple):
    message: ArchivedMessage
    body: body.Shown
    events: list[Any]
    beside: neighbours.Beside | None
    judged: Target | None


@require_safe
def waiting(request: HttpRequest, schema: str, table: str, row_id: str) -> HttpResponse:
    address = Address(schema, table)
    found, problem = trouble.read(lambda connection: _read_waiting(connection, address, row_id, request), address)
    if found is None:
        return _missing(request, problem, address=address, id=str(row_id))
    steps = timeline.steps(found.facts, [], clock.now())
    about = {"facts": found.facts, "body": found.body, "steps": steps, "topic": found.topic}
    return render(request, TEMPLATE, about)


@require_safe
def archived(request: HttpRequest, archive_id: int) -> HttpResponse:
    found, problem = trouble.read(lambda connection: _read_archived(connection, archive_id, request))
    if found is None:
        return _missing(request, problem, id=str(archive_id))
    known = facts.of_archived(found.message)
    about = {
        "facts": known,
        "body": found.body,
        "steps": timeline.steps(known, found.events, clock.now()),
        "topic": following.archived_topic(archive_id, str(timezone.get_current_timezone())),
        "error": error.of_archived(found.message, request.GET.get("trace") == "full"),
        "acts": acts.of_archived(request.user, known, found.judged),
        "beside": found.beside,
        "done": [*timeline.done(known, found.events)],
        "reasons": reasons.of(archive_id, found.events),
        "started_here": service.started_here(event.operation for event in found.events),
    }
    return render(request, TEMPLATE, about)


def _read_waiting(connection: Connection, address: Address, row_id: str, request: HttpRequest) -> Waiting | None:
    """In a queue, or in a table of delayed messages."""
    table = discovery.readable(connection, address) if source().allows(address) else None
    if table is not None and table.kind is Kind.DELAYED:
        navigation.stands_under(request, "delayed")
    known = _facts(connection, table, row_id) if table else None
    if table is None or known is None:
        return None
    shown = body.of_waiting(connection, table, known, request.GET.dict())
    return Waiting(known, shown, following.waiting_topic(table, row_id))


def _facts(connection: Connection, table: QueueTable, row_id: str) -> facts.Facts | None:
    if table.kind is Kind.DELAYED:
        return kept_back.facts_of(connection, table, row_id)
    found = browse.message(connection, table, row_id) if table.has_messages else None
    return facts.of_waiting(found, table.address) if found else None


def _read_archived(connection: Connection, archive_id: int, request: HttpRequest) -> Archived | None:
    message = store.show(connection, archive_id)
    if message is None:
        return None
    shown = _archived_body(connection, message, request)
    events = store.events(connection, archive_id)
    beside = neighbours.of(connection, message, request.GET.get("q"))
    target = message.target if message.state == "dead" else None
    judged = judge(connection, [target])[target] if target else None
    return Archived(message, shown, events, beside, judged)


def _archived_body(connection: Connection, message: ArchivedMessage, request: HttpRequest) -> body.Shown:
    def read(start: int, length: int) -> bytes | None:
        found = store.body(connection, message.id, start, length)
        return bytes(found.content) if found else None

    known = facts.of_archived(message)
    return body.of_copy(read, message.body_bytes, known.content_type, request.GET.dict())


def _missing(request: HttpRequest, problem: trouble.Trouble | None, **about: Any) -> HttpResponse:
    status = problem.status if problem else 404
    return render(request, "pgqueue_admin/message/missing.html", {"trouble": problem, **about}, status=status)


urlpatterns = [
    path("queues/<name:schema>/<name:table>/messages/<uuid:row_id>/", waiting, name="waiting_message"),
    path("archive/<int:archive_id>/", archived, name="archived_message"),
]
