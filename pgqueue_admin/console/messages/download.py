"""A body or its headers as a file: the exact bytes, sent piece by piece, never opened by the browser."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.chunked_download import pieces
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseError, SchemaMissing, TableChanged, TableMissing
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import bodies, discovery
from pgqueue_admin.services import content_access

PIECE = 1_000_000


@require_safe
def waiting(request: HttpRequest, schema: str, table: str, row_id: str) -> HttpResponseBase:
    if refused := _refused(request):
        return refused
    address = Address(schema, table)

    def read(offset: int) -> bytes | None:
        with queue_database().reading(address) as connection:
            known = discovery.readable(connection, address) if queue_database().allows(address) else None
            found = bodies.body(connection, known, row_id, offset, PIECE) if known and known.has_bodies else None
            return found.part if found else None

    return _download(read, f"{row_id}.bin", address)


@require_safe
def archived(request: HttpRequest, archive_id: int) -> HttpResponseBase:
    return _refused(request) or _of_archive(store.body, archive_id, f"archive-{archive_id}.bin")


@require_safe
def archived_headers(request: HttpRequest, archive_id: int) -> HttpResponseBase:
    """Whole: of many a page shows the first."""
    return _refused(request) or _of_archive(store.headers, archive_id, f"archive-{archive_id}-headers.json")


def _refused(request: HttpRequest) -> HttpResponse | None:
    refusal = content_access.of(request.user).refusal
    return HttpResponse(f"{refusal}\n", status=403, content_type="text/plain; charset=utf-8") if refusal else None


def _of_archive(what: Callable[..., Any], archive_id: int, name: str) -> HttpResponseBase:
    def read(offset: int) -> bytes | None:
        with queue_database().reading() as connection:
            found = what(connection, archive_id, offset, PIECE)
            return bytes(found.content) if found and found.size is not None else None

    return _download(read, name)


def _download(read: Callable[[int], bytes | None], name: str, address: Address | None = None) -> HttpResponseBase:
    """The first piece is read before the answer begins: what is not there is said, not sent empty."""
    try:
        first = read(0)
    except (TableMissing, TableChanged, SchemaMissing) as gone:
        raise Http404("Its table is gone, and the message with it.") from gone
    except DatabaseError as error:
        told = query_errors.told(error, address)
        return HttpResponse(f"{told.sentence} {told.detail}\n", status=503, content_type="text/plain; charset=utf-8")
    if first is None:
        raise Http404("This message is not here now, or it has none: NULL.")
    response = StreamingHttpResponse(
        pieces(lambda offset: (read(offset) or b"") if offset else first), content_type="application/octet-stream"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


urlpatterns = [
    path("queues/<name:schema>/<name:table>/messages/<uuid:row_id>/body/", waiting, name="waiting_body"),
    path("archive/<int:archive_id>/body/", archived, name="archived_body"),
    path("archive/<int:archive_id>/headers/", archived_headers, name="archived_headers"),
]
