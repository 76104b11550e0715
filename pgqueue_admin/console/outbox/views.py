"""All outboxes, one of them with what waits in it, one record, and the act that sends it."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.alerts import outboxes as states
from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.console import permissions, query_errors, responses, url_converters
from pgqueue_admin.console.outbox import rows
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.formatting.numbers import pluralize
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import in_doubt, outboxes
from pgqueue_admin.monitor.in_doubt import InDoubt
from pgqueue_admin.services import outboxes as acts
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown
from pgqueue_admin.transport import Endpoint as Engine
from pgqueue_admin.transport.settings import SettingsRefused
from pgqueue_admin.workers.processes.endpoint_settings import of_row

ROWS = 50


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    def work(connection: Connection) -> tuple[list[OutboxState], list[InDoubt]]:
        return states.load(connection), in_doubt.find(connection, outboxes.now(connection))

    found, problem = query_errors.read(work)
    states_found, doubtful = found or ([], [])
    all_of_them = rows.in_order(states_found)
    state, sentence = rows.verdict(all_of_them, doubtful)
    about = {
        "rows": [(each, rows.tone(each)) for each in all_of_them],
        "in_doubt": doubtful,
        "trouble": problem,
        "verdict": "Outboxes cannot be read now" if problem else sentence,
        "verdict_state": "warn" if problem else state,
    }
    return render(request, "pgqueue_admin/outbox/page.html", about)


@require_safe
def outbox(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    address, after = Address(schema, table), request.GET.get("after", "")

    def work(connection: Connection) -> tuple[OutboxState, list[outboxes.PendingRecord]] | None:
        row = states.one(connection, address)
        if row is None or row.figures.unread:
            return (row, []) if row else None
        return row, outboxes.pending(connection, row.figures.table, ROWS + 1, after)

    found, problem = query_errors.read(work, address)
    if found is None and problem is None:
        raise Http404(f"There is no outbox {schema}.{table} that may be looked at.")
    row, pending = found or (None, [])
    about = {
        "address": address,
        "row": row,
        "pending": pending[:ROWS],
        "next": pending[ROWS - 1].id if len(pending) > ROWS else "",
        "trouble": problem,
        "refusal": _refusal(request, row),
    }
    return render(request, "pgqueue_admin/outbox/outbox.html", about, status=problem.status if problem else 200)


@require_safe
def record(request: HttpRequest, schema: str, table: str, message_id: str) -> HttpResponse:
    address = Address(schema, table)

    def work(connection: Connection) -> tuple[OutboxState, outboxes.ShownRecord | None] | None:
        row = states.one(connection, address)
        return (row, outboxes.record(connection, row.figures.table, message_id)) if row else None

    found, problem = query_errors.read(work, address)
    row, shown = found or (None, None)
    if shown is None and problem is None:
        raise Http404(f"The outbox {schema}.{table} has no record {message_id}: it was cleaned up, or never there.")
    about = {
        "address": address,
        "row": row,
        "record": shown,
        "operations": rows.operations_of(shown.operations) if shown else None,
        "trouble": problem,
        "refusal": _refusal(request, row),
    }
    return render(request, "pgqueue_admin/outbox/record.html", about, status=problem.status if problem else 200)


@require_POST
def dispatch(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """One record, by its id, or all that wait, up to so many."""
    address, one = Address(schema, table), request.POST.get("id", "")
    row, problem = query_errors.read(lambda connection: states.one(connection, address), address)
    if row is None or problem:
        responses.refused(request, f"Nothing was sent: {problem.sentence if problem else 'that outbox is gone.'}")
    elif refusal := _refusal(request, row):
        responses.refused(request, f"Nothing was sent: {refusal}.")
    else:
        assert row.endpoint
        _dispatch(request, row.endpoint, row, [one] if one else None)
    return responses.back(request, url_converters.queue(address, "outbox"))


def _dispatch(request: HttpRequest, endpoint: Endpoint, row: OutboxState, ids: list[str] | None) -> None:
    try:
        wanted = ids if ids is not None else _waiting(row)
        engine = Engine(endpoint.name, queue_database().dsn, settings=of_row(endpoint), schema=endpoint.schema)
        try:
            assert engine.outbox
            done = acts.dispatch(engine.outbox, wanted, request.user, "console", responses.reason(request))
        finally:
            engine.stop(0)
    except (OperationRefused, SettingsRefused) as error:
        responses.refused(request, str(error))
    except (OutcomeUnknown, DatabaseError) as error:
        responses.failed(request, str(error))
    else:
        responses.done(request, _said(done))


def _waiting(row: OutboxState) -> list[str]:
    with queue_database().reading(row.address) as connection:
        return [each.id for each in outboxes.pending(connection, row.figures.table, acts.MOST)]


def _said(done: acts.Dispatched) -> str:
    sent = f"{pluralize(done.messages, 'message')} of {pluralize(done.records, 'record')} sent."
    passed = f" {pluralize(done.passed, 'record')} had been sent meanwhile." if done.passed else ""
    left = f" {pluralize(len(done.refused), 'record')} could not be sent: {done.refused[0]}" if done.refused else ""
    return f"{sent}{passed}{left}"


def _refusal(request: HttpRequest, row: OutboxState | None) -> str:
    """Why nothing may be sent from there, in words that follow a colon."""
    if refusal := permissions.refusal_for(request.user, "dispatch"):
        return str(refusal)
    is_foreign = row is not None and row.endpoint is None
    return "it is not of an endpoint that runs here with an outbox, so it is only looked at" if is_foreign else ""


urlpatterns = [
    path("outbox/", listing, name="outboxes"),
    path("outbox/<name:schema>/<name:table>/", outbox, name="outbox"),
    path("outbox/<name:schema>/<name:table>/dispatch/", dispatch, name="outbox_dispatch"),
    path("outbox/<name:schema>/<name:table>/records/<name:message_id>/", record, name="outbox_record"),
]
