"""Can I get it back? What was discarded, by whom, why, and until when it can be restored."""

from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.store import ArchivePage, CappedCount
from pgqueue_admin.console import permissions, query_errors
from pgqueue_admin.console.archive import cursors
from pgqueue_admin.console.bin import rows
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import retention
from pgqueue_admin.models import database_clock
from pgqueue_admin.services import content_access

ROWS = 50
DISCARDED = ArchiveFilter(state="discarded")


class BinPage(NamedTuple):
    shown: ArchivePage
    all: CappedCount


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    found, problem = query_errors.read(lambda connection: _read(connection, request))
    days = settings.PGQUEUE["ARCHIVE_RETENTION_DAYS"]
    about = {
        "trouble": problem,
        "count": found.all if found else None,
        "rows": _rows(found.shown, days, request) if found else [],
        "after": cursors.packed(found.shown.after) if found else "",
        "before": cursors.packed(found.shown.before) if found else "",
        "refusal": permissions.refusal_on_page(request.user, "restore"),
        "retry_refusal": permissions.refusal_on_page(request.user, "retry"),
        "kept": retention.kept(days),
        "days": days,
    }
    return render(request, "pgqueue_admin/bin/page.html", about)


def _rows(shown: ArchivePage, days: int, request: HttpRequest) -> list[rows.BinRow]:
    return rows.of(shown.messages, days, database_clock.now(), content_access.of(request.user))


def _read(connection: Connection, request: HttpRequest) -> BinPage:
    after, before = cursors.read(request.GET.get("after")), cursors.read(request.GET.get("before"))
    shown = store.page(connection, DISCARDED, after, ROWS, before=before)
    return BinPage(shown, store.count(connection, DISCARDED, settings.PGQUEUE["CAP"]))


urlpatterns = [path("bin/", page, name="bin")]
