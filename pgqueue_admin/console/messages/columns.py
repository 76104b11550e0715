"""List columns taken from message bodies: only the start of each body on the page is read."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from uuid import UUID

from django.http import HttpRequest

from pgqueue_admin.archive import store
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.messages import payload_columns
from pgqueue_admin.console.messages.payload_columns import PayloadColumns
from pgqueue_admin.dialects import Address, Connection, deadline
from pgqueue_admin.formatting.payload_fields import BodyStart
from pgqueue_admin.monitor import bodies
from pgqueue_admin.monitor.message import DelayedMessage, StoredMessage, WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess, Payload
from pgqueue_admin.services.masking import message_types
from pgqueue_admin.transport.wire import headers as h

Payloads = Mapping[Hashable, tuple[str, Payload]]  # row key → message type and fields


def of_queue(request: HttpRequest, table: QueueTable, messages: Sequence[WaitingMessage]) -> PayloadColumns:
    """Empty if rows may share a seq."""
    access = content_access.of(request.user)
    if not messages or not table.seq_unique:
        return PayloadColumns()
    return _read(request, access, lambda connection: _waiting(connection, table, messages, access), table.address)


def of_delayed(request: HttpRequest, table: QueueTable, messages: Sequence[DelayedMessage]) -> PayloadColumns:
    """Empty if no index covers the ids."""
    access = content_access.of(request.user)
    if not messages or (table.has_ids and not table.has_primary_key):
        return PayloadColumns()

    def read(connection: Connection) -> Payloads:
        return _payloads(messages, bodies.delayed_starts(connection, table, [each.id for each in messages]), access)

    return _read(request, access, read, table.address)


def of_archive(request: HttpRequest, ids: Sequence[int]) -> PayloadColumns:
    access = content_access.of(request.user)
    return _read(request, access, lambda it: archived(it, ids, access)) if ids else PayloadColumns()


def _read(
    request: HttpRequest, access: ContentAccess, ask: Callable[[Connection], Payloads], of: Address | None = None
) -> PayloadColumns:
    """Read within a time limit of its own: if bodies cannot be read, the list still shows."""
    if access.refusal:
        return PayloadColumns()
    asked = payload_columns.asked(request.GET)
    with deadline.within(payload_columns.SECONDS):
        found, trouble = query_errors.read(ask, of)
    if found is None:
        return PayloadColumns(asked or (), asked=asked is not None, trouble=trouble)
    return payload_columns.columns(found, asked, request.user)


def archived(connection: Connection, ids: Sequence[int], access: ContentAccess) -> Payloads:
    rows = store.body_starts(connection, ids, with_headers=bool(access.rules))
    found = {row.id: (row.message_type or "", access.archived_payload(row)) for row in rows}
    return {id: found[id] for id in ids if id in found}


def _waiting(
    connection: Connection, table: QueueTable, messages: Sequence[WaitingMessage], access: ContentAccess
) -> Payloads:
    return _payloads(messages, bodies.starts(connection, table, [each.seq for each in messages]), access)


def _payloads(messages: Sequence[StoredMessage], starts: Mapping[UUID, BodyStart], access: ContentAccess) -> Payloads:
    return {each.id: (each.type, _payload(each, starts[each.id], access)) for each in messages if each.id in starts}


def _payload(message: StoredMessage, start: BodyStart, access: ContentAccess) -> Payload:
    types = message_types.types_told(message.type, message.headers)
    return access.payload(start, message.headers.get(h.CONTENT_TYPE), types)
