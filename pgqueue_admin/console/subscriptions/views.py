"""Who receives this event? The subscription tables as they stand, and ending a subscription."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.console import filter_syntax, permissions, query_errors, responses
from pgqueue_admin.console.responses import Way
from pgqueue_admin.console.shortcuts import existing
from pgqueue_admin.console.subscriptions import matrix
from pgqueue_admin.console.subscriptions import rows as subscriptions
from pgqueue_admin.dialects import Address, Connection, visible_queues
from pgqueue_admin.dialects.errors import AddressUnreadable, DatabaseError
from pgqueue_admin.models import AuditEntry, Queue
from pgqueue_admin.models.queue_database import QueueDatabase, looked_at, queue_database, schemas_looked_at
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor import subscriptions as monitor
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services import subscriptions as services
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown

FIELDS = ("endpoint", "topic", "queueaddress")
SHARED = "needs somebody who sees all queues: the table is of all of them together"


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found, problem = query_errors.read(_read)
    if found:
        found = monitor.together([found, *map(_elsewhere, looked_at())])
    rows = subscriptions.rows(found) if found else []
    wanted = filter_syntax.read(request.GET.get("q", ""), subscriptions.FIELDS)
    matching = [] if wanted.faults else subscriptions.matching(rows, wanted)
    state, sentence = subscriptions.verdict(rows, of_some=visible_queues.current() is not None)
    about = {
        "found": found,
        "trouble": problem,
        "all": rows,
        "rows": matching,
        "matrix": matrix.matrix(matching) if request.GET.get("as") == "matrix" else None,
        "filter": wanted,
        "verdict": sentence if found else "Subscriptions cannot be read now",
        "verdict_state": state if found else "warn",
        "schemas": [*queue_database().schemas, *schemas_looked_at()],
        "refusal": permissions.refusal_on_page(request.user, "unsubscribe")
        if visible_queues.current() is None
        else SHARED,
    }
    return render(request, "pgqueue_admin/subscriptions/page.html", about)


@require_POST
def unsubscribe(request: HttpRequest) -> HttpResponse:
    """Confirm on a page of its own, then end the row that was seen."""
    row = _named(request)
    if "sure" not in request.POST:
        return _question(request, row)
    try:
        entry = services.unsubscribe(row, request.user, "console", responses.reason(request))
    except OperationNotAllowed as error:
        return _question(request, row, str(error), 403)
    except OutcomeUnknown as error:
        return _question(request, row, str(error), 503)
    except OperationRefused as error:
        return _question(request, row, str(error), 422)
    said = f"1 subscription of {row.endpoint} ended: it stops receiving {row.topic} within 5 s."
    undo = [Way("Undo", reverse("subscribe_again", args=[entry.pk]), {})] if entry.pk else []  # else the audit failed
    responses.done(request, said, *undo)
    return responses.back(request, "subscriptions")


@require_POST
def again(request: HttpRequest, entry_id: int) -> HttpResponse:
    """Undo the unsubscribe of an audit entry."""
    entry = existing(AuditEntry, "There is no such change.", pk=entry_id, noun="subscription", verb="unsubscribe")
    try:
        services.subscribe_again(entry, request.user, "console")
        responses.done(request, f"{(entry.before or {}).get('endpoint', '')} is subscribed again.")
    except OutcomeUnknown as error:
        responses.failed(request, str(error))
    except (OperationRefused, AddressUnreadable) as error:
        responses.refused(request, str(error))
    return responses.back(request, "subscriptions")


def _named(request: HttpRequest) -> monitor.SubscriptionRow:
    """The row that the form names; 404 if it names no table."""
    given = {name: request.POST.get(name, "").replace("\0", "") for name in ("schema", "table", *FIELDS)}
    if not (given["schema"] and given["table"]):
        raise Http404("There is no such subscription.")
    return monitor.SubscriptionRow(
        Address(given["schema"], given["table"]), given["endpoint"], given["topic"], given["queueaddress"]
    )


def _question(request: HttpRequest, row: monitor.SubscriptionRow, fault: str = "", status: int = 200) -> HttpResponse:
    back = responses.came_from(request) or reverse("subscriptions")
    fields = {"schema": row.table.schema, "table": row.table.table, "next": back}
    fields |= {name: getattr(row, name) for name in FIELDS}
    refusal, reason = permissions.refusal_on_page(request.user, "unsubscribe"), responses.reason(request)
    about = {"row": row, "fields": fields, "fault": fault, "refusal": refusal, "next": back, "reason": reason}
    return render(request, "pgqueue_admin/subscriptions/unsubscribe.html", about, status=status)


def _read(connection: Connection) -> monitor.SubscriptionTables:
    return _find(connection, queue_database())


def _find(connection: Connection, database: QueueDatabase) -> monitor.SubscriptionTables:
    """All tables are found, since they belong to no queue; the monitor keeps only rows of visible queues."""
    with visible_queues.within(None):
        tables = discovery.find(connection, database.schemas, _told())
    return monitor.find(connection, tables)


def _elsewhere(database: QueueDatabase) -> monitor.SubscriptionTables:
    """Subscriptions of another database: if it does not answer, the others are still shown."""
    try:
        with database.read_session() as connection:
            return _find(connection, database)
    except DatabaseError as error:
        return monitor.SubscriptionTables([], [], [], 0, [f"{database.alias}: {error}"])


def _told() -> discovery.Evidence:
    """Queue kinds that the sampler has learned from messages, with the reason."""
    rows = Queue.objects.filter(gone_since=None, kind__in=[TableKind.INPUT, TableKind.ERROR, TableKind.AUDIT])
    return {Address(row.schema, row.table): (TableKind(row.kind), row.reason) for row in rows}


urlpatterns = [
    path("subscriptions/", page, name="subscriptions"),
    path("subscriptions/unsubscribe/", unsubscribe, name="unsubscribe"),
    path("subscriptions/undo/<int:entry_id>/", again, name="subscribe_again"),
]
