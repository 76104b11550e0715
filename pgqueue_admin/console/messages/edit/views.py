"""The page Edit and retry of one dead message: body and headers before and after, and what changes."""

from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.archive import dead_messages, lease_retry, search_query, store
from pgqueue_admin.archive.edited_retry import EditedRetry
from pgqueue_admin.archive.message_edit import MOST_BYTES, is_locked, why_locked
from pgqueue_admin.archive.messages import ArchivedMessage, ArchiveFilter
from pgqueue_admin.console import permissions, query_errors, responses
from pgqueue_admin.console.messages.detail import summary
from pgqueue_admin.console.messages.edit import draft, editable_body
from pgqueue_admin.console.messages.edit.draft import EditDraft
from pgqueue_admin.console.queues import input_queues
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.errors import DatabaseDown, DatabaseError
from pgqueue_admin.dialects.visible_queues import LEASE_NAME
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.edited_retry import EditChanges, retry_edited
from pgqueue_admin.services.masking import reveals
from pgqueue_admin.services.masking.message_types import types_of
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OutcomeUnknown
from pgqueue_admin.services.operations.targets import Target, judge, parsed
from pgqueue_admin.services.unattended import without_receiver
from pgqueue_admin.transport.wire import headers as h

TEMPLATE = "pgqueue_admin/messages/detail/edit.html"
_MASKED = "Masking rules hide parts of it, so it is sent as it was. Reveal them first to edit it."


class EditedSource(NamedTuple):
    """``blocking_reason``: why it cannot be edited; then ``draft`` is None."""

    message: ArchivedMessage
    draft: EditDraft | None
    blocking_reason: str = ""


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, archive_id: int) -> HttpResponse:
    found, problem = query_errors.read(
        lambda connection: _read(connection, archive_id, content_access.of(request.user))
    )
    if found is None:
        about = {"trouble": problem, "id": str(archive_id)}
        status = problem.status if problem else 404
        return render(request, "pgqueue_admin/messages/detail/missing.html", about, status=status)
    reveals.opened_archived(request.user, archive_id, found.message.queue)
    if found.draft is None and "look" in request.POST and "HX-Request" in request.headers:
        return HttpResponse(status=204)  # a late comparison, after the edit was sent: no error
    if found.draft is None:
        return _page(request, found, None, status=409 if request.method == "POST" else 200)
    if request.method != "POST":
        return _page(request, found, found.draft)
    is_lease = found.message.kind == "lease"  # it can only go back to its queue
    chosen = found.message.target if is_lease else _chosen(request.POST.get("to", ""))
    typed = draft.typed(found.draft, request.POST, chosen)
    if "look" in request.POST:
        return _page(request, found, typed)
    return _send(request, found, typed)


def _send(request: HttpRequest, found: EditedSource, typed: EditDraft) -> HttpResponse:
    fault = _blocking_reason(request, found, typed)
    if fault:
        return _page(request, found, typed, fault, 422)
    assert typed.target
    queue, message = found.message.queue or LEASE_NAME, found.message  # original clients name none
    try:
        sent = retry_edited(
            message.id, queue, typed.sent, typed.target, request.user, "console", typed.reason, _for_audit(found, typed)
        )
    except OperationNotAllowed as error:
        return _page(request, found, typed, str(error), 403)
    except OutcomeUnknown as error:
        return _page(request, found, typed, str(error), 503)
    except DatabaseDown as error:
        return _page(request, found, typed, f"Nothing was sent. {error}", 503)
    except DatabaseError as error:
        return _page(request, found, typed, f"Nothing was sent. {error}", 422)
    if sent.is_on_its_way:
        responses.refused(
            request, f"Whether it was sent is not known yet. {sent.outcome.why} Its id is {sent.message_id}."
        )
        return responses.SeeOther(reverse("archived_message", args=[message.id]))
    if sent.outcome.result != "done":
        return _page(request, found, typed, f"Nothing was sent. {sent.outcome.why}", 409)
    responses.done(request, f"1 edited message was sent to {sent.outcome.target} with a new id.", _way(message, sent))
    return responses.SeeOther(reverse("archived_message", args=[message.id]))


def _way(message: ArchivedMessage, sent: EditedRetry) -> Way:
    if message.kind == "lease" and message.target:
        address = [message.target.schema, message.target.table, int(sent.message_id)]
        return Way("See the new message", reverse("lease_message", args=address))
    return Way("Find the new message", reverse("find_message", args=[sent.message_id]))


def _blocking_reason(request: HttpRequest, found: EditedSource, typed: EditDraft) -> str:
    """Why it cannot be sent; empty if it can."""
    if refusal := permissions.refusal_on_page(request.user, "retry"):
        return f"Nothing was sent: it {refusal}."
    if typed.faults:
        return f"Nothing was sent. {' '.join(typed.faults)}"
    if typed.target is None:
        return "Nothing was sent: choose the queue it goes to."
    if typed.changes_nothing and typed.target == found.message.target:
        return "Nothing was sent: nothing is changed. Retry sends it as it was."
    if found.message.kind == "lease" and typed.fault_of_body:
        return f"Nothing was sent: the queue takes JSON alone, and this is none. {typed.fault_of_body}."
    if not typed.reason:
        return "Nothing was sent: a reason is asked for."
    if typed.target != found.message.target and request.POST.get("sure") != str(typed.target_text):
        return (
            f"Nothing was sent yet. {typed.target.table} is not the queue where it died: press again to send it there."
        )
    return ""


def _read(connection: Connection, archive_id: int, access: ContentAccess) -> EditedSource | None:
    message = store.show(connection, archive_id)
    if message is None:
        return None
    if access.refusal:
        return EditedSource(message, None, access.refusal)
    if message.kind not in ("transport", "lease"):
        return EditedSource(message, None, "Only messages of queues can be edited here.")
    if first := lease_retry.first_endings(connection, [archive_id]).get(archive_id):
        return EditedSource(message, None, lease_retry.second_retry_refusal(first))
    if refused := dead_messages.refused(message, "dead"):
        return EditedSource(message, None, refused.why or "")
    if (message.headers_length or 0) > len(message.headers or ""):
        return EditedSource(message, None, "Its headers are too long to be edited here.")
    part = store.body(connection, archive_id, 0, MOST_BYTES + 1)
    raw = None if part is None or part.size is None else bytes(part.content)
    target = message.target
    try:
        headers = h.parse(message.headers)
        types, content_type = _told(message, headers)
        body = _editable(raw, content_type, access, types)
        name = queue_database().dialect.canonical(target) if target else ""
        return EditedSource(
            message, draft.begun(message.headers, body, target, name, partial(access.hides_header, types=types))
        )
    except h.HeadersUnreadable as error:
        return EditedSource(message, None, f"It cannot be retried: {error}.")


def _told(message: ArchivedMessage, headers: h.Headers) -> tuple[tuple[str, ...], str | None]:
    """Its types, which masking rules match, and its content type. A lease message's kind is its only type."""
    if message.kind == "lease":
        return types_of(message.message_type), "application/json"
    return types_of(message.message_type, headers.get(h.ENCLOSED_MESSAGE_TYPES)), headers.get(h.CONTENT_TYPE)


def _editable(
    raw: bytes | None, content_type: str | None, access: ContentAccess, types: Collection[str]
) -> editable_body.EditableBody:
    """A body with masked parts is sent unchanged: a placeholder must never be sent in their place."""
    if access.masks_bodies(types) and access.body(raw or b"", content_type, types):
        return editable_body.EditableBody(None, _MASKED)
    return editable_body.of(raw, content_type)


def _chosen(name: str) -> Address | None:
    return next(iter(parsed([name])), None)


def _for_audit(found: EditedSource, typed: EditDraft) -> EditChanges:
    assert found.draft
    before, after = {**found.draft.own}, {**typed.own}
    same = {name for name, value in before.items() if after.get(name, name) == value and name in after}
    was = {name: value for name, value in before.items() if name not in same}
    now = {name: value for name, value in after.items() if name not in same}
    return EditChanges(was, now, (typed.body.stored, typed.text) if typed.sent.body is not None else None)


def _page(
    request: HttpRequest, found: EditedSource, shown: EditDraft | None, fault: str = "", status: int = 200
) -> HttpResponse:
    message = found.message
    known = summary.of_archived(message, content_access.of(request.user))
    about: dict[str, Any] = {
        "facts": known,
        "message": known.archived,
        "draft": shown,
        "blocking_reason": found.blocking_reason,
        "fault": fault,
        "alike": _alike(message),
        "rule_path": _rule_path(message, shown),
        "elsewhere": bool(shown and shown.target and shown.target != message.target),
        "queues": input_queues.known(shown.target if shown else None, elsewhere=True),
        "removed": sorted(name for name in known.headers if name.startswith(h.FAILURE_PREFIXES)),
        "locked": _locked(known.headers),
        "refusal": permissions.refusal_on_page(request.user, "retry"),
        **(_judged(shown) if shown and shown.target else {}),
    }
    return render(request, TEMPLATE, about, status=status)


def _alike(message: ArchivedMessage) -> str:
    """The search for dead messages of its type, queue and exception; empty if they are unknown."""
    if message.kind == "lease" or not message.exception_type or not message.queue:
        return ""
    same = {"queue": message.queue, "type_is": message.message_type or "", "exception_is": message.exception_type}
    return search_query.written(ArchiveFilter(state="dead", **same))


def _rule_path(message: ArchivedMessage, shown: EditDraft | None) -> str:
    """The address of the form for a rule that sends all such messages to the target."""
    target = shown.target_text if shown else ""
    about = {"message_type": message.message_type or "", "queue": message.queue or "", "target": target or ""}
    return f"{reverse('retry_rules')}?{urlencode(about)}#new"


def _locked(headers: h.Headers) -> list[tuple[str, str | None, str]]:
    """Name, value and why it cannot be edited."""
    kept = [name for name in headers if is_locked(name) and not name.startswith(h.FAILURE_PREFIXES)]
    return [(name, headers[name], why_locked(name)) for name in kept]


def _judged(shown: EditDraft) -> dict[str, Any]:
    """Whether the chosen queue would take it; the act checks again."""
    target = shown.target
    assert target

    def work(connection: Connection) -> Target:
        return judge(connection, [target])[target]

    judged, problem = query_errors.read(work)
    name = queue_database().dialect.canonical(target)
    refused = judged.refusal() if judged else problem.sentence if problem else ""
    return {
        "target_refusal": refused,
        "without_receiver": without_receiver([name]),
        "runs": judged.runs if judged else (),
    }


urlpatterns = [path("archive/<int:archive_id>/edit/", page, name="edit_message")]
