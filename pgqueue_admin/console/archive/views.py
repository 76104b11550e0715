"""Find exactly these messages: dead and finished ones, to search, tick and act on (C4)."""

from dataclasses import dataclass, replace
from datetime import datetime
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
from pgqueue_admin.console.archive import export_views, facets, search, sorting, window
from pgqueue_admin.console.archive.coverage import CoverageLine, coverage_line
from pgqueue_admin.console.messages import columns
from pgqueue_admin.console.messages.detail import archive_rows
from pgqueue_admin.console.saved_views import links
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
    """``listed``: the filter that its pages share; ``coverage``: what a text search covered, in words.

    ``window``: where texts were searched, so that the search can be repeated.
    """

    rows: list[archive_rows.ArchiveRow]
    count: store.CappedCount
    after: str
    before: str
    milliseconds: int
    listed: ArchiveFilter
    window: str = ""
    coverage: CoverageLine | None = None
    is_by_index: bool = False
    sorted_from: datetime | None = None  # if only the newest were sorted: when the oldest of these died


@require_safe
@links.opens_with_default("archive")
def page(request: HttpRequest) -> HttpResponse:
    query = search.read(request.GET.get("q"), content_access.of(request.user))
    found, problem = (
        (None, None)
        if query.error
        else query_errors.read(lambda connection: _read(connection, query, request), searching=query.reads_rows)
    )
    sort = sorting.read(request.GET.get("sort"))
    is_open = request.GET.get("facets") == "open"
    narrow, narrow_problem = facets.read(found.listed, query.filter) if found and is_open else (None, None)
    payload = columns.of_archive(request, [row.message.id for row in found.rows]) if found else None
    if found and payload:
        found = replace(found, rows=archive_rows.with_columns(found.rows, payload))
    about = {
        "query": query,
        "columns": payload,
        "kept_in_address": _kept_in_address(query, sort, is_open),
        "is_open": is_open,
        "sort": sort,
        "cap": settings.PGQUEUE["CAP"],
        "sorts": sorting.links(sort),
        "narrow": narrow,
        "narrow_trouble": narrow_problem,
        "tabs": TABS,
        "links": links.of(request, "archive"),
        "found": found,
        "trouble": problem,
        "retry": query.filter.state in {"", "dead"},
        "restore": query.filter.state in {"", "discarded"},
        "retry_refusal": permissions.refusal_on_page(request.user, "retry"),
        "discard_refusal": permissions.refusal_on_page(request.user, "discard"),
        "export_refusal": permissions.refusal_on_page(request.user, "export"),
        "most_exported": export_views.MOST,
        "export_minutes": round(export_views.SECONDS / 60),
        "removed": retention.removed(settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]),
        "alert_to": settings.PGQUEUE["ALERT_TO"],
    }
    return render(request, "pgqueue_admin/archive/page.html", about)


def _read(connection: Connection, query: search.ArchiveSearch, request: HttpRequest) -> ArchiveResult:
    started = perf_counter()
    covered = _covered(request, connection) if query.reads_rows else None
    if query.reads_rows and covered is None:
        return _looked_through(request, connection, query, window.unpack(request.GET.get("from")) or (), started)
    asked = query.filter
    if covered is not None:
        store.check(connection, asked)
        asked = ArchiveFilter(state="", ids=store.ids(connection, replace(asked, window=covered)))
    shown = sorting.page(connection, asked, sorting.read(request.GET.get("sort")), request.GET, ROWS)
    count = store.count(connection, asked, settings.PGQUEUE["CAP"])
    packed = request.GET.get("w", "") if covered is not None else ""
    found = _result(connection, request, asked, shown, count, started, packed)
    return replace(found, is_by_index=text_search.is_by_index(covered or ()))


def _covered(request: HttpRequest, connection: Connection) -> tuple[Lane, ...] | None:
    """The window that a search covered. None if unknown or no longer usable: then the search starts anew."""
    lanes = window.unpack(request.GET.get("w"))
    return lanes if lanes is not None and text_search.still_covers(connection, lanes) else None


def _kept_in_address(query: search.ArchiveSearch, sort: str, is_open: bool) -> list[tuple[str, str]]:
    """Query parameters that links keep, without the columns, which a form replaces."""
    given = [("q", query.text), ("sort", "" if sort == sorting.NEWEST else sort), ("facets", "open" if is_open else "")]
    return [(name, value) for name, value in given if value or name == "q"]


def _looked_through(
    request: HttpRequest, connection: Connection, query: search.ArchiveSearch, start: tuple[Lane, ...], started: float
) -> ArchiveResult:
    """The first page of a text search. Further pages query within its window."""
    looked = text_search.look_through(connection, query.filter, start)
    asked = ArchiveFilter(state="", ids=looked.ids)
    shown = sorting.page(connection, asked, sorting.read(request.GET.get("sort")), {}, ROWS)
    count = store.CappedCount(len(looked.ids), False)
    said = coverage_line(looked, query, text_search.estimate(connection))
    return _result(connection, request, asked, shown, count, started, window.pack(looked.window), said)


def _result(
    connection: Connection,
    request: HttpRequest,
    listed: ArchiveFilter,
    shown: sorting.Listed,
    count: store.CappedCount,
    started: float,
    packed: str,
    said: CoverageLine | None = None,
) -> ArchiveResult:
    rows = archive_rows.rows(connection, shown.messages, content_access.of(request.user))
    taken = round((perf_counter() - started) * 1000)
    ends = shown.after, shown.before
    sorted_from = shown.window_from if count.more else None
    by_index = said is not None and said.by_index
    return ArchiveResult(rows, count, *ends, taken, listed, packed, said, by_index, sorted_from)


urlpatterns = [path("archive/", page, name="archive")]
