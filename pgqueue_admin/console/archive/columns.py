"""Columns of the archive's list that come from bodies: of its page's rows the start of each is read, and no more."""

from collections.abc import Sequence

from django.http import HttpRequest

from pgqueue_admin.archive import store
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.messages import payload_columns
from pgqueue_admin.console.messages.payload_columns import PayloadColumns
from pgqueue_admin.dialects import Connection, deadline
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess, Payload


def read(request: HttpRequest, ids: Sequence[int]) -> PayloadColumns:
    """A part of its own: where bodies cannot be read, the list stays."""
    access = content_access.of(request.user)
    asked = payload_columns.asked(request.GET)
    if not ids or access.refusal:
        return PayloadColumns()
    with deadline.within(payload_columns.SECONDS):
        found, trouble = query_errors.read(lambda connection: payloads(connection, ids, access))
    if found is None:
        return PayloadColumns(asked or (), asked=asked is not None, trouble=trouble)
    return payload_columns.columns(found, asked, request.user)


def payloads(connection: Connection, ids: Sequence[int], access: ContentAccess) -> dict[object, tuple[str, Payload]]:
    """Of each its type and its fields."""
    rows = store.body_starts(connection, ids, with_headers=bool(access.rules))
    found = {row.id: (row.message_type or "", access.archived_payload(row)) for row in rows}
    return {id: found[id] for id in ids if id in found}
