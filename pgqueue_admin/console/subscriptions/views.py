"""Who receives this event? The subscription tables as they stand; read only."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import filter_syntax, query_errors
from pgqueue_admin.console.subscriptions import matrix
from pgqueue_admin.console.subscriptions import rows as subscriptions
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor import subscriptions as monitor
from pgqueue_admin.monitor.queue_table import TableKind


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found, problem = query_errors.read(_read)
    rows = subscriptions.rows(found) if found else []
    wanted = filter_syntax.read(request.GET.get("q", ""), subscriptions.FIELDS)
    matching = [] if wanted.faults else subscriptions.matching(rows, wanted)
    state, sentence = subscriptions.verdict(rows)
    about = {
        "found": found,
        "trouble": problem,
        "all": rows,
        "rows": matching,
        "matrix": matrix.matrix(matching) if request.GET.get("as") == "matrix" else None,
        "filter": wanted,
        "verdict": sentence if found else "Subscriptions cannot be read now",
        "verdict_state": state if found else "warn",
        "schemas": queue_database().schemas,
    }
    return render(request, "pgqueue_admin/subscriptions/page.html", about)


def _read(connection: Connection) -> monitor.SubscriptionTables:
    return monitor.find(connection, discovery.find(connection, queue_database().schemas, _told()))


def _told() -> discovery.Evidence:
    """What the sampler has asked of messages already: a queue each."""
    rows = Queue.objects.filter(gone_since=None, kind__in=[TableKind.INPUT, TableKind.ERROR, TableKind.AUDIT])
    return {Address(row.schema, row.table): (TableKind(row.kind), row.reason) for row in rows}


urlpatterns = [path("subscriptions/", page, name="subscriptions")]
