"""Which messages wait here? A queue's messages, page by page; looking locks nothing and takes nothing (C3)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.console import navigation, pagination, query_errors
from pgqueue_admin.console.leases import views as leases
from pgqueue_admin.console.messages import columns, waiting_acts
from pgqueue_admin.console.messages.detail import delayed_rows, message_list
from pgqueue_admin.console.messages.payload_columns import PayloadCell, PayloadColumns
from pgqueue_admin.console.queues.detail.gone_queue import KnownQueue
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import is_watched, sees_locked_rows
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.browse import MessagePage
from pgqueue_admin.monitor.delayed import DelayedPage
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.transport.wire.type_names import short_type

_MASKED = "The start of bodies is not shown: masking rules hide parts of bodies. Each message's page shows the others."


class MessageRow(NamedTuple):
    message: WaitingMessage
    tick: str
    type: str
    line: str | None
    cells: Sequence[PayloadCell] = ()


class MessageListData(NamedTuple):
    table: QueueTable | None
    page: MessagePage | None
    rows: list[MessageRow]
    asked: message_list.MessageListQuery


@require_safe
def page(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    address = Address(schema, table)
    queue = Queue.objects.select_related("latest").filter(schema=schema, table=table).first()
    asked = message_list.asked(request.GET.dict(), content_access.of(request.user))
    found, problem = query_errors.read(
        lambda connection: _read(connection, address, request, queue, asked),
        address,
        searching=asked.wanted is not None,
    )
    if found and found.table and found.table.kind is TableKind.LEASE:
        return leases.listing(request, address, queue)
    if isinstance(found, delayed_rows.DelayedPageRows):
        navigation.stands_under(request, "delayed")
    gone = problem.kind == "gone" if problem else not (found and found.table)
    known = KnownQueue(address) if gone else None
    asked = found.asked if found else asked
    found, payload = _with_columns(request, found)
    about = {
        "columns": payload,
        "kept_in_address": [
            (name, request.GET[name]) for name in ("q", "order", "from", "after", "before") if name in request.GET
        ],
        "address": address,
        "queue": queue,
        "known": known,
        "asked": asked,
        "no_lines": _no_lines(content_access.of(request.user)) if asked.bodyline else "",
        "trouble": problem,
        "hides_locked_rows": not sees_locked_rows(address),
    }
    template = f"pgqueue_admin/messages/{'gone' if gone else _template(found)}.html"
    return render(
        request,
        template,
        {**about, "found": found, **_cursors(found), **_acts(request, found)},
        status=404 if gone else problem.status if problem else 200,
    )


def _with_columns(
    request: HttpRequest, found: MessageListData | delayed_rows.DelayedPageRows | None
) -> tuple[MessageListData | delayed_rows.DelayedPageRows | None, PayloadColumns | None]:
    if found is None or found.table is None:
        return found, None
    if isinstance(found, delayed_rows.DelayedPageRows):
        payload = columns.of_delayed(request, found.table, [row.message for row in found.rows])
        return replace(found, rows=[replace(row, cells=payload.of(row.message.id)) for row in found.rows]), payload
    payload = columns.of_queue(request, found.table, [row.message for row in found.rows])
    return found._replace(rows=[row._replace(cells=payload.of(row.message.id)) for row in found.rows]), payload


def _acts(request: HttpRequest, found: MessageListData | delayed_rows.DelayedPageRows | None) -> dict[str, Any]:
    return waiting_acts.offered(request.user, found.table) if found and found.table and found.rows else {}


def _template(found: MessageListData | delayed_rows.DelayedPageRows | None) -> str:
    return "delayed" if isinstance(found, delayed_rows.DelayedPageRows) else "page"


def _read(
    connection: Connection,
    address: Address,
    request: HttpRequest,
    queue: Queue | None,
    asked: message_list.MessageListQuery,
) -> MessageListData | delayed_rows.DelayedPageRows:
    table = discovery.readable(connection, address) if is_watched(address) else None
    if table is not None:
        asked = asked.fitting(table, connection.dialect.searches_waiting)
    if table is not None and table.kind is TableKind.DELAYED:
        return delayed_rows.found(connection, table, request.GET.dict(), asked)
    return _waiting(connection, table, asked, _head(queue), content_access.of(request.user))


def _waiting(
    connection: Connection,
    table: QueueTable | None,
    wanted: message_list.MessageListQuery,
    head: int | None,
    access: ContentAccess,
) -> MessageListData:
    if table is None or not table.has_messages or wanted.error:
        return MessageListData(table, None, [], wanted)
    shown = message_list.page(connection, table, wanted, head)
    rows = [
        MessageRow(each, waiting_acts.tick(each), short_type(each.type), _line(connection, table, each, wanted, access))
        for each in shown.messages
    ]
    return MessageListData(table, shown, rows, wanted)


def _line(
    connection: Connection,
    table: QueueTable,
    message: WaitingMessage,
    wanted: message_list.MessageListQuery,
    access: ContentAccess,
) -> str | None:
    if not wanted.bodyline or _no_lines(access):
        return None
    return message_list.bodyline(connection, table, message)


def _no_lines(access: ContentAccess) -> str:
    """Why the start of bodies is not shown: masking a part of a body is impossible without the rest."""
    return access.refusal or (_MASKED if access.masks_bodies() else "")


def _head(queue: Queue | None) -> int | None:
    return queue.latest.head_seq if queue and hasattr(queue, "latest") else None


def _cursors(found: MessageListData | delayed_rows.DelayedPageRows | None) -> dict[str, Any]:
    """The cursors of the previous and next page, as query names."""
    if not (found and found.page):
        return {}
    page = found.page
    if isinstance(page, DelayedPage):
        beside: dict[str, Any] = {"previous": {"before": page.previous}, "next": {"after": page.next}}
    else:
        beside = {"previous": page.previous or {}, "next": page.next or {}}
    return {name: _packed(cursor) for name, cursor in beside.items()}


def _packed(cursor: dict[str, Any]) -> dict[str, str]:
    keys = {name: at if isinstance(at, tuple) else (at,) for name, at in cursor.items() if at is not None}
    return {name: pagination.pack(*key) for name, key in keys.items()}


urlpatterns = [path("queues/<name:schema>/<name:table>/messages/", page, name="messages")]
