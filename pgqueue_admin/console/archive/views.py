"""Find exactly these messages: the dead and the finished, searched, ticked and acted on (C4)."""

from dataclasses import dataclass, replace
from time import perf_counter

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store, text_search
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import Lane
from pgqueue_admin.console import permissions, query_errors
from pgqueue_admin.console.archive import cursors, search, window
from pgqueue_admin.console.archive.coverage import CoverageLine, coverage_line
from pgqueue_admin.console.messages.detail import archive_rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import retention
from pgqueue_admin.services import content_access

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
    """``window``: where texts were looked for, to ask for the same again; ``coverage``: what that was."""

    rows: list[archive_rows.ArchiveRow]
    count: store.CappedCount
    after: str
    before: str
    milliseconds: int
    window: str = ""
    coverage: CoverageLine | None = None


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    query = search.read(request.GET.get("q"), content_access.of(request.user))
    found, problem = (
        (None, None)
        if query.error
        else query_errors.read(lambda connection: _read(connection, query, request), searching=query.reads_rows)
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
    covered = window.unpack(request.GET.get("w")) if query.reads_rows else None
    if query.reads_rows and covered is None:
        return _looked_through(request, connection, query, window.unpack(request.GET.get("from")) or (), started)
    asked = query.filter
    if covered is not None:
        store.check(connection, asked)
        asked = ArchiveFilter(state="", ids=store.ids(connection, replace(asked, window=covered)))
    after, before = cursors.read(request.GET.get("after")), cursors.read(request.GET.get("before"))
    shown = store.page(connection, asked, after, ROWS, before=before)
    count = store.count(connection, asked, settings.PGQUEUE["CAP"])
    return _result(request, shown, count, started, request.GET.get("w", "") if covered is not None else "")


def _looked_through(
    request: HttpRequest, connection: Connection, query: search.ArchiveSearch, start: tuple[Lane, ...], started: float
) -> ArchiveResult:
    """The first page of what texts were looked for in; further ones ask within its window."""
    looked = text_search.look_through(connection, query.filter, start)
    shown = store.page(connection, ArchiveFilter(state="", ids=looked.ids), None, ROWS)
    count = store.CappedCount(len(looked.ids), False)
    said = coverage_line(looked, query, text_search.estimate(connection))
    return _result(request, shown, count, started, window.pack(looked.window), said)


def _result(
    request: HttpRequest,
    shown: store.ArchivePage,
    count: store.CappedCount,
    started: float,
    packed: str,
    said: CoverageLine | None = None,
) -> ArchiveResult:
    access = content_access.of(request.user)
    rows = [archive_rows.row(each, access) for each in shown.messages]
    taken = round((perf_counter() - started) * 1000)
    return ArchiveResult(rows, count, cursors.packed(shown.after), cursors.packed(shown.before), taken, packed, said)


urlpatterns = [path("archive/", page, name="archive")]
