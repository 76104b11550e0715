"""Columns of a queue's list that come from bodies: of its page's rows the start of each is read, and no more."""

from collections.abc import Sequence

from django.http import HttpRequest

from pgqueue_admin.console import query_errors
from pgqueue_admin.console.messages import payload_columns
from pgqueue_admin.console.messages.payload_columns import PayloadColumns
from pgqueue_admin.dialects import Connection, deadline
from pgqueue_admin.formatting.payload_fields import BodyStart
from pgqueue_admin.monitor import bodies
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess, Payload
from pgqueue_admin.transport.wire import headers as h


def read(request: HttpRequest, table: QueueTable, messages: Sequence[WaitingMessage]) -> PayloadColumns:
    """A part of its own: where bodies cannot be read, the list stays. None where many rows may have one seq."""
    access = content_access.of(request.user)
    asked = payload_columns.asked(request.GET)
    if not messages or access.refusal or not table.seq_unique:
        return PayloadColumns()
    with deadline.within(payload_columns.SECONDS):
        found, trouble = query_errors.read(
            lambda connection: _payloads(connection, table, messages, access), table.address
        )
    if found is None:
        return PayloadColumns(asked or (), asked=asked is not None, trouble=trouble)
    return payload_columns.columns(found, asked, request.user)


def _payloads(
    connection: Connection, table: QueueTable, messages: Sequence[WaitingMessage], access: ContentAccess
) -> dict[object, tuple[str, Payload]]:
    starts = bodies.starts(connection, table, [each.seq for each in messages])
    return {each.id: (each.type, _payload(each, starts[each.id], access)) for each in messages if each.id in starts}


def _payload(message: WaitingMessage, start: BodyStart, access: ContentAccess) -> Payload:
    types = content_access.types_told(message.type, message.headers)
    return access.payload(start, message.headers.get(h.CONTENT_TYPE), types)
