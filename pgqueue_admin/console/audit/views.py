"""Who did what? The audit, filtered, by day, and as a file."""

from io import TextIOWrapper
from itertools import groupby, islice
from tempfile import TemporaryFile
from typing import Any

from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from pgqueue_admin.archive.store import CappedCount
from pgqueue_admin.console import pagination, permissions, responses
from pgqueue_admin.console.archive import shown_search
from pgqueue_admin.console.audit import export, facets, filter, undo
from pgqueue_admin.console.audit.rows import AuditRow
from pgqueue_admin.console.saved_views import links
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import audit_exports, content_access
from pgqueue_admin.services.content_access import ContentAccess

ROWS = 50
COUNTED_TO = 10_000
AT_ONCE = 20  # entries read at a time for a file: one may hold two bodies
FORMATS = {"csv": (export.as_csv, "text/csv; charset=utf-8"), "jsonl": (export.as_json_lines, "application/jsonl")}


@require_safe
@links.opens_with_default("audit")
def page(request: HttpRequest) -> HttpResponse:
    access = content_access.of(request.user)
    wanted = filter.read(request.GET.get("q", ""), access)
    below = pagination.integer(request.GET.get("after"))
    entries = wanted.entries
    found = list((entries.filter(pk__lt=below) if below is not None else entries)[: ROWS + 1])
    number = entries[: COUNTED_TO + 1].count()
    oldest = AuditEntry.objects.order_by("pk").first()
    is_open = request.GET.get("facets") == "open" and not wanted.faults
    about: dict[str, Any] = {
        "filter": wanted,
        "is_open": is_open,
        "narrow": facets.read(wanted) if is_open else None,
        "links": links.of(request, "audit"),
        "days": _by_day(found[:ROWS], access),
        "count": CappedCount(min(number, COUNTED_TO), number > COUNTED_TO),
        "oldest": oldest.at if oldest else None,
        "more": pagination.pack(found[ROWS - 1].pk) if len(found) > ROWS else "",
        "below": below,
        "most": export.MOST,
        "refusal": permissions.refusal_on_page(request.user, "export"),
        "may_undo": not permissions.refusal_on_page(request.user, "set"),
    }
    return render(request, "pgqueue_admin/audit/page.html", about)


def _by_day(entries: list[AuditEntry], access: ContentAccess) -> list[tuple[Any, list[AuditRow]]]:
    """Days are those of the person's zone."""
    days = groupby(entries, lambda entry: timezone.localtime(entry.at).date())
    ways = undo.paths(entries)
    return [
        (day, [AuditRow(shown_search.entry(entry, access), ways.get(entry.pk, "")) for entry in some])
        for day, some in days
    ]


@require_POST
def exported(request: HttpRequest) -> HttpResponseBase:
    """Export the newest entries that the filter finds. The export becomes an audit entry itself."""
    if refusal := permissions.refusal_on_page(request.user, "export"):
        responses.refused(request, f"Nothing was exported: it {refusal}.")
        return responses.SeeOther(reverse("audit"))
    access = content_access.of(request.user)
    wanted = filter.read(request.POST.get("q", ""), access)
    if wanted.faults:
        responses.refused(request, f"Nothing was exported. {' '.join(wanted.faults)}")
        return responses.SeeOther(reverse("audit"))
    name = request.POST.get("format", "csv")
    name = name if name in FORMATS else "csv"
    write, content_type = FORMATS[name]
    written = TemporaryFile()  # noqa: SIM115 the answer closes it
    file = TextIOWrapper(written, "utf-8", errors="replace", newline="")
    entries = islice(wanted.entries.defer(None).iterator(chunk_size=AT_ONCE), export.MOST)
    count = write((shown_search.entry(each, access) for each in entries), file)
    audit_exports.note(request.user, wanted.text, count)
    file.detach()
    written.seek(0)
    return FileResponse(written, as_attachment=True, filename=f"audit.{name}", content_type=content_type)


urlpatterns = [path("audit/", page, name="audit"), path("audit/export/", exported, name="audit_export")]
