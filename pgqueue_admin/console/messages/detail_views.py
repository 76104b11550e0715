"""What is this message, what happened to it, what may I do? One page for waiting and archived messages."""

from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import lease_retry, store
from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console import navigation, query_errors
from pgqueue_admin.console.messages import waiting_acts
from pgqueue_admin.console.messages.detail import (
    actions,
    body,
    delayed_rows,
    error,
    failure,
    followed_message,
    prev_next,
    timeline,
)
from pgqueue_admin.console.messages.detail import summary as facts
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import AuditEntry, database_clock
from pgqueue_admin.models.queue_database import is_watched, sees_locked_rows
from pgqueue_admin.monitor import browse, discovery
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.operations import queries
from pgqueue_admin.services.operations.targets import Target, judge

TEMPLATE = "pgqueue_admin/messages/detail/page.html"
MOST_REASONS = 20


class WaitingMessageData(NamedTuple):
    table: QueueTable
    tick: str  # value that the form of an act posts
    facts: facts.MessageSummary
    body: body.ShownBody
    topic: str


class ArchivedMessageData(NamedTuple):
    message: ArchivedMessage
    body: body.ShownBody
    events: list[Any]
    beside: prev_next.PrevNext | None
    judged: Target | None
    retried_as: int | None  # of a lease message
    deaths: store.DeathRecord | None
    first_ending: int | None  # of a lease message: the archive id of its earlier ending
    failure: failure.FailureOfMessage | None


@require_safe
def waiting(request: HttpRequest, schema: str, table: str, row_id: str) -> HttpResponse:
    address = Address(schema, table)
    found, problem = query_errors.read(lambda connection: _read_waiting(connection, address, row_id, request), address)
    if found is None:
        return _missing(request, problem, address=address, id=str(row_id))
    reveals.opened_waiting(request.user, address, row_id)
    steps = timeline.steps(found.facts, [], database_clock.now())
    about = {"facts": found.facts, "body": found.body, "steps": steps, "topic": found.topic, "tick": found.tick}
    return render(request, TEMPLATE, {**about, **waiting_acts.offered(request.user, found.table)})


@require_safe
def archived(request: HttpRequest, archive_id: int) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: _read_archived(connection, archive_id, request))
    if found is None:
        return _missing(request, problem, id=str(archive_id))
    known = facts.of_archived(found.message, content_access.of(request.user))
    reveals.opened_archived(request.user, archive_id, found.message.queue)
    about = {
        "facts": known,
        "body": found.body,
        "steps": timeline.steps(known, found.events, database_clock.now()),
        "topic": followed_message.archived_topic(archive_id, str(timezone.get_current_timezone())),
        "error": error.of_archived(known, request.GET.get("trace") == "full"),
        "acts": actions.of_archived(request.user, known, found.judged, found.first_ending),
        "beside": found.beside,
        "retried_as": found.retried_as,
        "deaths": found.deaths,
        "failure": found.failure,
        "first_ending": found.first_ending,
        "done": [*timeline.done(known, found.events)],
        "reasons": _reasons(archive_id, found.events),
        "started_here": queries.started_here(event.operation for event in found.events),
    }
    return render(request, TEMPLATE, about)


def _reasons(archive_id: int, events: list[Any]) -> QuerySet[AuditEntry]:
    """Reasons people gave for acts on it, newest first. ``events``: its own, which name the operations it was in."""
    operations = {event.operation for event in events if event.operation}
    of_it = Q(operation_id__in=operations) | Q(verb__in=("move out", "edit"), after__archive_id=archive_id)
    of_it |= Q(verb__in=("discard", "move out", "cancel delayed"), after__archive_ids__contains=archive_id)
    return AuditEntry.objects.filter(of_it, noun="message").exclude(reason="")[:MOST_REASONS]


def _read_waiting(
    connection: Connection, address: Address, row_id: str, request: HttpRequest
) -> WaitingMessageData | None:
    """Read from a queue, or from a table of delayed messages."""
    table = discovery.readable(connection, address) if is_watched(address) else None
    if table is not None and table.kind is TableKind.DELAYED:
        navigation.stands_under(request, "delayed")
    known = waiting_facts(connection, table, row_id, content_access.of(request.user)) if table else None
    if table is None or known is None:
        return None
    shown = body.of_waiting(connection, table, known, request.GET.dict())
    tick = f"{known.row_id}:{known.due_text or known.seq}"
    return WaitingMessageData(table, tick, known, shown, followed_message.waiting_topic(table, row_id))


def waiting_facts(
    connection: Connection, table: QueueTable, row_id: str, access: ContentAccess
) -> facts.MessageSummary | None:
    """Summary of a message in a queue or a delayed table; None if it is gone."""
    if table.kind is TableKind.DELAYED:
        return delayed_rows.facts_of(connection, table, row_id, access)
    found = browse.message(connection, table, row_id) if table.has_messages else None
    return facts.of_waiting(found, table.address, access) if found else None


def _read_archived(connection: Connection, archive_id: int, request: HttpRequest) -> ArchivedMessageData | None:
    message = store.show(connection, archive_id)
    if message is None:
        return None
    shown = _archived_body(connection, message, request)
    events = store.events(connection, archive_id)
    beside = prev_next.of(connection, message, request.GET.get("q"), content_access.of(request.user))
    target = message.target if message.state == "dead" else None
    judged = judge(connection, [target])[target] if target else None
    is_lease = message.kind == "lease"
    retried_as = lease_retry.retried_as(connection, archive_id) if is_lease else None
    deaths = store.deaths(connection, message)
    first = lease_retry.first_endings(connection, [archive_id]).get(archive_id) if is_lease else None
    cause = failure.of_archived(connection, message)
    return ArchivedMessageData(message, shown, events, beside, judged, retried_as, deaths, first, cause)


def _archived_body(connection: Connection, message: ArchivedMessage, request: HttpRequest) -> body.ShownBody:
    def read(start: int, length: int) -> bytes | None:
        found = store.body(connection, message.id, start, length)
        return bytes(found.content) if found else None

    known = facts.of_archived(message, content_access.of(request.user))
    content_type = "application/json" if message.kind == "lease" else known.content_type
    return body.of_copy(read, message.body_bytes, content_type, request.GET.dict(), known.access, known.types)


def _missing(request: HttpRequest, problem: query_errors.QueryError | None, **about: Any) -> HttpResponse:
    status = problem.status if problem else 404
    hidden = "address" in about and not sees_locked_rows(about["address"])
    about = {"trouble": problem, "may_be_locked": hidden, **about}
    return render(request, "pgqueue_admin/messages/detail/missing.html", about, status=status)


urlpatterns = [
    path("queues/<name:schema>/<name:table>/messages/<uuid:row_id>/", waiting, name="waiting_message"),
    path("archive/<int:archive_id>/", archived, name="archived_message"),
]
