"""All outboxes, one with its pending records, one record, and the acts on them."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.alerts import outbox_dispatch
from pgqueue_admin.alerts import outboxes as states
from pgqueue_admin.alerts.outboxes import OutboxState
from pgqueue_admin.console import permissions, query_errors, responses, url_converters
from pgqueue_admin.console.outbox import forms, rows
from pgqueue_admin.console.outbox.rows import WaitingRecord
from pgqueue_admin.console.query_errors import QueryError
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection, database_alias
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import caught_duplicates, outbox_databases
from pgqueue_admin.monitor import in_doubt, outboxes
from pgqueue_admin.monitor.in_doubt import InDoubt
from pgqueue_admin.services import content_access
from pgqueue_admin.services.operations.errors import OperationRefused, OutcomeUnknown
from pgqueue_admin.services.outbox import acts, first_seen, switches
from pgqueue_admin.transport.settings import SettingsRefused

T = TypeVar("T")
ROWS = 50
HISTORY = 10  # entries of the audit


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    def work(connection: Connection) -> tuple[list[OutboxState], list[InDoubt]]:
        return states.load(connection), in_doubt.find(connection, outboxes.now(connection))

    found, problem = query_errors.read(work)
    states_found, beside_queues = found or ([], [])
    elsewhere = states.load_elsewhere()
    doubtful = in_doubt.each_once([*beside_queues, *elsewhere.in_doubt])
    all_of_them = rows.in_order([*states_found, *elsewhere.states])
    doubtful = states.with_owners(doubtful, all_of_them)
    decides = Counter(each.owner.outbox for each in doubtful if each.owner)
    state, sentence = rows.verdict(all_of_them, doubtful, elsewhere.unlooked)
    caught = caught_duplicates.by_endpoint()
    about = {
        "rows": [
            (each, rows.tone(each), caught.get(each.endpoint.name) if each.endpoint else None, decides[each.address])
            for each in all_of_them
        ],
        "in_doubt": doubtful,
        "unlooked": elsewhere.unlooked,
        "trouble": problem,
        "verdict": "Outboxes cannot be read now" if problem else sentence,
        "verdict_state": "warn" if problem else state,
    }
    return render(request, "pgqueue_admin/outbox/page.html", about)


def _read(work: Callable[[Connection], T], address: Address) -> tuple[T | None, QueryError | None]:
    """Call ``query_errors.read`` on the table's database; find nothing for an alias of no database."""
    elsewhere = outbox_databases.of_table(address)
    if elsewhere is None and database_alias.alias_of(address):
        return None, None
    return query_errors.read(work, address, database=elsewhere.of if elsewhere else None)


@require_safe
def outbox(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    address, after = Address(schema, table), request.GET.get("after", "")

    def work(connection: Connection) -> tuple[OutboxState, list[WaitingRecord]] | None:
        row = states.one(connection, address)
        if row is None or row.figures.unread:
            return (row, []) if row else None
        found = outboxes.pending(connection, row.figures.table, ROWS + 1, after)
        return row, rows.waiting(connection, row.figures.table, found)

    found, problem = _read(work, address)
    if found is None and problem is None:
        raise Http404(f"There is no outbox {schema}.{table} that may be looked at.")
    row, pending = found or (None, [])
    decided = row.decided if row and row.endpoint is None and not row.alias else None
    about = {
        "address": address,
        "row": row,
        "pending": pending[:ROWS],
        "next": pending[ROWS - 1].record.id if len(pending) > ROWS else "",
        "trouble": problem,
        "refusal": outbox_dispatch.refusal(request.user, row),
        "caught": caught_duplicates.by_endpoint().get(row.endpoint.name) if row and row.endpoint else None,
        "is_allowed": decided is not None and decided.dispatch_allowed,
        "decided": decided,
        "keeping": forms.of_row(decided),
        "history": [(entry, "") for entry in acts.history(address)[:HISTORY]],
        "set_refusal": permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/outbox/outbox.html", about, status=problem.status if problem else 200)


@require_safe
def record(request: HttpRequest, schema: str, table: str, message_id: str) -> HttpResponse:
    address = Address(schema, table)

    def work(connection: Connection) -> tuple[OutboxState, outboxes.ShownRecord | None, datetime | None] | None:
        row = states.one(connection, address)
        if row is None or (shown := outboxes.record(connection, row.figures.table, message_id)) is None:
            return (row, None, None) if row else None
        undated = [] if shown.created_at or shown.dispatched else [shown.id]
        return row, shown, first_seen.first_seen(connection, address, undated).get(shown.id)

    found, problem = _read(work, address)
    row, shown, seen_at = found or (None, None, None)
    if shown is None and problem is None:
        raise Http404(f"The outbox {schema}.{table} has no record {message_id}: it was cleaned up, or never there.")
    about = {
        "address": address,
        "row": row,
        "record": shown,
        "seen_at": seen_at,
        "sends": rows.recorded(shown.operations, content_access.of(request.user), request.GET) if shown else None,
        "trouble": problem,
        "refusal": outbox_dispatch.refusal(request.user, row),
    }
    return render(request, "pgqueue_admin/outbox/record.html", about, status=problem.status if problem else 200)


@require_POST
def dispatch(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """Send one record by its id, or all pending ones up to a limit."""
    address, one = Address(schema, table), request.POST.get("id", "")
    row, problem = _read(lambda connection: states.one(connection, address), address)
    if row is None or problem:
        responses.refused(request, f"Nothing was sent: {problem.sentence if problem else 'that outbox is gone.'}")
    elif refusal := outbox_dispatch.refusal(request.user, row):
        responses.refused(request, f"Nothing was sent: {refusal}.")
    else:
        _dispatch(request, row, [one] if one else None)
    return responses.back(request, url_converters.queue(address, "outbox"))


@require_POST
def allow(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """Switch sending from another program's outbox on or off."""
    address, allowed = Address(schema, table), request.POST.get("allow") == "yes"
    row, problem = _read(lambda connection: states.one(connection, address), address)
    if row is None or problem or row.endpoint or row.alias:
        why = problem.sentence if problem else _switch_refusal(row)
        responses.refused(request, f"Nothing was changed: {why}")
        return responses.back(request, url_converters.queue(address, "outbox") if row else "outboxes")
    try:
        changed = switches.allow_dispatch(address, allowed, request.user, "console", responses.reason(request))
    except OperationRefused as error:
        responses.refused(request, str(error))
    else:
        now, place = "on" if allowed else "off", url_converters.queue(address, "outbox_allow")
        undo = Way("Undo", place, {"allow": "no" if allowed else "yes"})
        if changed:
            responses.done(request, f"Sending from here is switched {now}.", undo)
        else:
            responses.done(request, f"It was {now} already.")
    return responses.back(request, url_converters.queue(address, "outbox"))


@require_POST
def keep(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """Switch relay and clean-up of another program's outbox on or off, each by itself."""
    address, form = Address(schema, table), forms.KeepingForm(request.POST)
    row, problem = _read(lambda connection: states.one(connection, address), address)
    if row is None or problem or row.endpoint or row.alias:
        why = problem.sentence if problem else _switch_refusal(row)
        responses.refused(request, f"Nothing was changed: {why}")
    elif not form.is_valid():
        responses.refused(request, f"Nothing was changed: {form.first_fault}")
    else:
        _keep(request, address, form)
    return responses.back(request, url_converters.queue(address, "outbox") if row else "outboxes")


def _switch_refusal(row: OutboxState | None) -> str:
    if row is None:
        return "it is gone."
    return f"{outbox_dispatch.only_looked(row.alias)}." if row.alias else "it is the outbox of an endpoint here."


def _keep(request: HttpRequest, address: Address, form: forms.KeepingForm) -> None:
    try:
        changed = switches.keep(
            address, form.relay_seconds, form.keep_seconds, request.user, "console", responses.reason(request)
        )
    except OperationRefused as error:
        responses.refused(request, str(error))
    except DatabaseError as error:
        responses.failed(request, str(error))
    else:
        responses.done(request, form.said if changed else "It was so already.")


def _dispatch(request: HttpRequest, row: OutboxState, ids: list[str] | None) -> None:
    try:
        done = outbox_dispatch.send(row, ids, request.user, "console", responses.reason(request))
    except (OperationRefused, SettingsRefused) as error:
        responses.refused(request, str(error))
    except (OutcomeUnknown, DatabaseError) as error:
        responses.failed(request, str(error))
    else:
        responses.done(request, outbox_dispatch.said(done))


urlpatterns = [
    path("outbox/", listing, name="outboxes"),
    path("outbox/<name:schema>/<name:table>/", outbox, name="outbox"),
    path("outbox/<name:schema>/<name:table>/dispatch/", dispatch, name="outbox_dispatch"),
    path("outbox/<name:schema>/<name:table>/allow/", allow, name="outbox_allow"),
    path("outbox/<name:schema>/<name:table>/keep/", keep, name="outbox_keep"),
    path("outbox/<name:schema>/<name:table>/records/<name:message_id>/", record, name="outbox_record"),
]
