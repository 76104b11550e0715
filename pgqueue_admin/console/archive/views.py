"""Find exactly these messages: the dead and the finished, searched, ticked and acted on (C4)."""

from dataclasses import dataclass
from time import perf_counter

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import permissions, query_errors
from pgqueue_admin.console.archive import cursors, search
from pgqueue_admin.console.messages.detail import archive_rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import retention

ROWS = 50
TABS = (
    ("state:dead", "Dead"),
    ("state:retried", "Retried"),
    ("state:dead_again", "Dead again"),
    ("state:succeeded", "Succeeded"),
    ("state:discarded", "Discarded"),
    ("", "All"),
)


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    rows: list[archive_rows.ArchiveRow]
    count: store.CappedCount
    after: str
    before: str
    milliseconds: int


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    query = search.read(request.GET.get("q"))
    found, problem = (
        (None, None) if query.error else query_errors.read(lambda connection: _read(connection, query, request))
    )
    about = {
        "query": query,
        "tabs": TABS,
        "found": found,
        "trouble": problem,
        "retry": query.filter.state in {"", "dead"},
        "restore": query.filter.state in {"", "discarded"},
        "retry_refusal": permissions.refusal_for(request.user, "retry"),
        "discard_refusal": permissions.refusal_for(request.user, "discard"),
        "removed": retention.removed(settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
        "alert_to": settings.PGQUEUE["ALERT_TO"],
    }
    return render(request, "pgqueue_admin/archive/page.html", about)


def _read(connection: Connection, query: search.ArchiveSearch, request: HttpRequest) -> ArchiveResult:
    started = perf_counter()
    after, before = cursors.read(request.GET.get("after")), cursors.read(request.GET.get("before"))
    shown = store.page(connection, query.filter, after, ROWS, before=before)
    count = store.count(connection, query.filter, settings.PGQUEUE["CAP"])
    rows, taken = [archive_rows.row(each) for each in shown.messages], round((perf_counter() - started) * 1000)
    return ArchiveResult(rows, count, cursors.packed(shown.after), cursors.packed(shown.before), taken)


urlpatterns = [path("archive/", page, name="archive")]
