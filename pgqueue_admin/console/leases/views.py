"""The lease queue's messages, one message, and the actions on them: publish, release a lock, end."""

from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from pgqueue_admin.archive import store
from pgqueue_admin.console import pagination, query_errors, responses, url_converters
from pgqueue_admin.console.leases import acts, endings, query, table
from pgqueue_admin.console.leases.lookup import lease_table
from pgqueue_admin.console.messages import payload_columns
from pgqueue_admin.console.messages.detail import body
from pgqueue_admin.console.messages.detail.summary import MessageSummary
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import database_of, queue_database
from pgqueue_admin.monitor import lease_messages
from pgqueue_admin.monitor.lease_messages import LeaseMessage, Listeners
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services import content_access, leases
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking import message_types, reveals
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown

ROWS = 50
ON_QUEUE_PAGE = 8  # of the locked messages, and of the waiting ones
EXAMPLE = '{"kind": "", "test": true}'
ORDERS = {
    "number": "By number",
    "newest": "Newest first",
    "locked": "Locked, soonest end first",
    "waiting": "Waiting, in the order of claims",
}


class LeaseLook(NamedTuple):
    """What a queue's page shows of a lease table."""

    table: QueueTable
    messages: table.LeaseTable
    hour: endings.HourOfEndings | None
    listeners: Listeners | None


class LeasePage(NamedTuple):
    """``looked_at``: how many rows a filter read."""

    table: QueueTable
    asked: query.LeaseQuery
    messages: table.LeaseTable
    next: int | None
    looked_at: int | None = None


class ShownLease(NamedTuple):
    table: QueueTable
    message: LeaseMessage
    facts: MessageSummary
    body: body.ShownBody
    archived: list[Any]


def look(address: Address, access: ContentAccess) -> LeaseLook | None:
    """None if the table is gone. Raises DatabaseError."""
    with database_of(address).read_session(address) as connection:
        found = lease_table(connection, address)
        if found is None:
            return None
        locked = lease_messages.page(connection, found, "locked", ON_QUEUE_PAGE)
        waiting = lease_messages.page(connection, found, "waiting", ON_QUEUE_PAGE)
        shown = table.table([*locked, *waiting], access)
        if address != QUEUE:  # another table of this shape: no client claims from it
            return LeaseLook(found, shown, None, None)
        return LeaseLook(found, shown, _endings(connection), lease_messages.listeners(connection))


def _endings(connection: Connection) -> endings.HourOfEndings | None:
    """None if the archive cannot be read, or is not ours: the messages are shown nonetheless."""
    try:
        return endings.HourOfEndings(lease_messages.endings(connection))
    except DatabaseError:
        return None


def listing(request: HttpRequest, address: Address, queue: Queue | None) -> HttpResponse:
    """The counterpart of ``messages`` of other queues."""
    order = request.GET.get("order", "")
    order, q = order if order in ORDERS else "number", request.GET.get("q", "").strip()
    if now := query.as_written_now(q):
        return redirect(f"{request.path}?{urlencode({**request.GET.dict(), 'q': now})}")
    if q and order != "newest":
        order = "number"
    found, problem = query_errors.read(
        lambda connection: _page(connection, address, order, q, request), address, searching=bool(q)
    )
    about = {
        "asked": found.asked if found else query.LeaseQuery(q),
        "looked_at": found.looked_at if found else None,
        "address": address,
        "queue": queue,
        "orders": ORDERS.items(),
        "order": order,
        "trouble": problem,
        "rows": found.messages.rows if found else [],
        "fields": found.messages.fields if found else [],
        "columns": found.messages.columns if found else None,
        "kept_in_address": [
            (name, request.GET[name]) for name in ("q", "order", "after", "before") if name in request.GET
        ],
        "next": pagination.pack(found.next) if found and found.next is not None else None,
        "pages": order in ("number", "newest"),
        **(acts.offered(request.user, found.table) if found else {}),
        "publish_refusal": leases.refusal("publish", address, request.user),
    }
    return render(request, "pgqueue_admin/leases/list.html", about, status=problem.status if problem else 200)


def _page(connection: Connection, address: Address, order: Any, q: str, request: HttpRequest) -> LeasePage | None:
    found = lease_table(connection, address)
    if found is None:
        return None
    access, cols = content_access.of(request.user), payload_columns.asked(request.GET)
    asked = query.read(q, access, found)
    if asked.error:
        return LeasePage(found, asked, table.table([], content_access.NOTHING), None)
    after, before = (pagination.integer(request.GET.get(name)) for name in ("after", "before"))
    if asked.wanted:
        is_newest = order == "newest"
        looked = query.look(connection, found, asked, ROWS, is_newest_first=is_newest, after=after, before=before)
        shown = table.table_of(looked.messages, access, cols, request.user)
        return LeasePage(found, asked, shown, looked.onward, looked.looked_at)
    where = {name: at for name, at in (("after", after), ("before", before)) if at is not None}
    rows = lease_messages.page(connection, found, order, ROWS + 1, **where)
    shown = table.table_of(rows[:ROWS], access, cols, request.user)
    return LeasePage(found, asked, shown, rows[ROWS - 1].id if len(rows) > ROWS else None)


@require_safe
def message(request: HttpRequest, schema: str, table: str, number: int) -> HttpResponse:
    address = Address(schema, table)
    found, problem = query_errors.read(lambda connection: _message(connection, address, number, request), address)
    if found is None:
        return _missing(request, address, number, problem)
    about = {
        **found._asdict(),
        "address": address,
        "row": _row(found.message),
        "release_refusal": leases.refusal("release", address, request.user),
        "end_refusal": leases.refusal("end", address, request.user),
    }
    return render(request, "pgqueue_admin/leases/message.html", about)


def _missing(
    request: HttpRequest, address: Address, number: int, problem: query_errors.QueryError | None
) -> HttpResponse:
    archived = query_errors.read(lambda connection: _archived(connection, number))[0] if address == QUEUE else []
    about = {"trouble": problem, "address": address, "number": number, "archived": archived or []}
    return render(request, "pgqueue_admin/leases/missing.html", about, status=problem.status if problem else 404)


def _message(connection: Connection, address: Address, number: int, request: HttpRequest) -> ShownLease | None:
    known = lease_table(connection, address)
    found = lease_messages.message(connection, known, number) if known else None
    if known is None or found is None:
        return None

    def read(start: int, length: int) -> bytes | None:
        part = lease_messages.document(connection, known, number, start, length)
        return part.part if part else None

    access = content_access.of(request.user)
    reveals.opened_waiting(request.user, address, number)
    types = message_types.types_of(found.kind)
    shown = body.of_copy(read, found.document_size, "application/json", request.GET.dict(), access, types)
    archived = _archived(connection, number) if address == QUEUE else []
    return ShownLease(known, access.lease(found), _facts(found, address, access), shown, archived)


def _archived(connection: Connection, number: int) -> list[Any]:
    """Archive rows of lease messages with this number, which an earlier message may have had."""
    rows = store.sightings(connection, str(number)).rows
    return [row for row in rows if row.message_id == str(number) and row.queue in (None, _canonical())]


def _canonical() -> str:
    return queue_database().dialect.canonical(QUEUE)


def _facts(found: LeaseMessage, address: Address, access: ContentAccess) -> MessageSummary:
    return MessageSummary(
        state=found.state,
        address=address,
        row_id=None,
        message_id=str(found.id),
        type=found.kind or "",
        headers_text=None,
        headers={},
        unreadable="",
        body_size=found.document_size,
        sent_at=found.created_at,
        access=access,
    )


def _row(found: LeaseMessage) -> table.LeaseRow:
    return table.table([found], content_access.ALL).rows[0]


@require_http_methods(["GET", "HEAD", "POST"])
def publish(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    """The form that publishes a message. A refused form keeps what was typed."""
    address, typed, fault, status = Address(schema, table), request.POST.get("message", EXAMPLE), "", 200
    if request.method == "POST":
        try:
            number = leases.publish(
                address, typed, request.user, "console", responses.reason(request), responses.form_key(request)
            )
        except (OperationRefused, OutcomeUnknown) as error:
            fault, status = str(error), 403 if isinstance(error, OperationNotAllowed) else 422
        else:
            see = Way("See the message", reverse("lease_message", args=[schema, table, number]))
            responses.done(request, f"Published as message {number:,} in {schema}.{table}.", see)
            return responses.SeeOther(url_converters.queue(address))
    refusal, reason = leases.refusal("publish", address, request.user), responses.reason(request)
    about = {"address": address, "typed": typed, "fault": fault, "reason": reason, "refusal": refusal}
    about["form_key"] = responses.next_form_key(request)
    return render(request, "pgqueue_admin/leases/publish.html", about, status=status)


@require_POST
def release(request: HttpRequest, schema: str, table: str, number: int) -> HttpResponse:
    back, seen = reverse("lease_message", args=[schema, table, number]), request.POST.get("seen", "")
    try:
        leases.release(Address(schema, table), number, seen, request.user, "console", responses.reason(request))
    except (OperationRefused, OutcomeUnknown) as error:
        responses.refused(request, str(error))
        return responses.SeeOther(back)
    responses.done(request, f"The lock on message {number:,} is off: a worker may claim it.", Way("See it", back))
    return responses.SeeOther(url_converters.queue(Address(schema, table)))


@require_POST
def end(request: HttpRequest, schema: str, table: str, number: int) -> HttpResponse:
    address, seen, reason = Address(schema, table), request.POST.get("seen", ""), responses.reason(request)
    result = "rejected" if request.POST.get("result") == "rejected" else "failed"
    try:
        archived = leases.end(address, number, seen, result, request.user, "console", reason)  # type: ignore[arg-type]
    except (OperationRefused, OutcomeUnknown) as error:
        responses.refused(request, str(error))
        return responses.SeeOther(reverse("lease_message", args=[schema, table, number]))
    see = Way("See it in the archive", reverse("archived_message", args=[archived]))
    responses.done(request, f"Message {number:,} ended as {result}. It can be retried from the archive.", see)
    return responses.SeeOther(url_converters.queue(address))


_MESSAGE = "queues/<name:schema>/<name:table>/messages/<int:number>/"
urlpatterns = [
    *acts.urlpatterns,
    path("queues/<name:schema>/<name:table>/publish/", publish, name="lease_publish"),
    path(_MESSAGE, message, name="lease_message"),
    path(f"{_MESSAGE}release/", release, name="lease_release"),
    path(f"{_MESSAGE}end/", end, name="lease_end"),
]
