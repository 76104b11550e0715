"""A body or its headers as a file: the exact bytes, sent piece by piece, never opened by the browser."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.chunked_download import pieces
from pgqueue_admin.console.messages.detail import body, summary
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.console.messages.detail_views import waiting_facts
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import DatabaseError, SchemaMissing, TableChanged, TableMissing
from pgqueue_admin.models.queue_database import database_of, is_watched, queue_database
from pgqueue_admin.monitor import bodies, discovery
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.masking.body import MOST

PIECE = 1_000_000
MASKED = "Not downloaded: masking rules hide parts of it. Its page shows the other parts."

Read = Callable[[int], bytes | None]  # offset → at most a PIECE


@require_safe
def waiting(request: HttpRequest, schema: str, table: str, row_id: str) -> HttpResponseBase:
    address = Address(schema, table)
    access = content_access.of(request.user)

    def read(offset: int) -> bytes | None:
        with database_of(address).read_session(address) as connection:
            known = discovery.readable(connection, address) if is_watched(address) else None
            found = bodies.body(connection, known, row_id, offset, PIECE) if known and known.has_bodies else None
            return found.part if found else None

    def known() -> MessageSummary | None:
        with database_of(address).read_session(address) as connection:
            found = discovery.readable(connection, address) if is_watched(address) else None
            return waiting_facts(connection, found, row_id, access) if found else None

    opened = partial(reveals.opened_waiting, request.user, address, row_id)
    return _download(read, f"{row_id}.bin", access, partial(_is_masked, access, read, known), opened, address)


@require_safe
def archived(request: HttpRequest, archive_id: int) -> HttpResponseBase:
    access, read = content_access.of(request.user), _of_archive(store.body, archive_id)
    is_masked = partial(_is_masked, access, read, partial(_archived, archive_id, access))
    return _download(read, f"archive-{archive_id}.bin", access, is_masked, _opened(request, archive_id))


@require_safe
def archived_headers(request: HttpRequest, archive_id: int) -> HttpResponseBase:
    """The whole headers: a page shows only the first of many."""
    access, read = content_access.of(request.user), _of_archive(store.headers, archive_id)

    def is_masked() -> bool:
        if not access.rules:
            return False
        with queue_database().read_session() as connection:
            found = store.show(connection, archive_id)
        return found is not None and access.hides_in(found.headers, found.headers_length)

    return _download(read, f"archive-{archive_id}-headers.json", access, is_masked, _opened(request, archive_id))


def _opened(request: HttpRequest, archive_id: int) -> Callable[[], None]:
    return partial(reveals.opened_archived, request.user, archive_id, None)


def _archived(archive_id: int, access: ContentAccess) -> MessageSummary | None:
    with queue_database().read_session() as connection:
        found = store.show(connection, archive_id)
    return summary.of_archived(found, access) if found else None


def _is_masked(access: ContentAccess, read: Read, known: Callable[[], MessageSummary | None]) -> bool:
    """Whether a rule hides any part of a body. ``known`` reads the message; it is called only if a rule may apply.

    True if the message is not found, since that is unknown.
    """
    if not access.masks_bodies():
        return False
    facts = known()
    if facts is None:
        return True
    mask = body.mask_of(access, facts.types)
    return bool(mask and mask((read(0) or b"")[: MOST + 1], facts.content_type))


def _forbidden(why: str) -> HttpResponse:
    return HttpResponse(f"{why}\n", status=403, content_type="text/plain; charset=utf-8")


def _of_archive(what: Callable[..., Any], archive_id: int) -> Read:
    def read(offset: int) -> bytes | None:
        with queue_database().read_session() as connection:
            found = what(connection, archive_id, offset, PIECE)
            return bytes(found.content) if found and found.size is not None else None

    return read


def _download(
    read: Read,
    name: str,
    access: ContentAccess,
    is_masked: Callable[[], bool],
    opened: Callable[[], None],
    address: Address | None = None,
) -> HttpResponseBase:
    """Send the exact bytes, or no file.

    The first piece is read before the response begins: a missing body is an error, not an empty file.
    """
    if access.refusal:
        return _forbidden(access.refusal)
    try:
        if is_masked():
            return _forbidden(MASKED)
        first = read(0)
    except (TableMissing, TableChanged, SchemaMissing) as gone:
        raise Http404("Its table is gone, and the message with it.") from gone
    except DatabaseError as error:
        told = query_errors.query_error(error, address)
        return HttpResponse(f"{told.sentence} {told.detail}\n", status=503, content_type="text/plain; charset=utf-8")
    if first is None:
        raise Http404("This message is not here now, or it has none: NULL.")
    opened()
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
