"""Sending one message to a queue by hand: after a refusal the form keeps what was typed."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods

from pgqueue_admin.console import permissions, query_errors, responses, url_converters
from pgqueue_admin.console.responses import Way
from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import typed_messages
from pgqueue_admin.services.operations import acts_allowed
from pgqueue_admin.services.operations.errors import OperationNotAllowed, OperationRefused, OutcomeUnknown
from pgqueue_admin.services.typed_messages import CONTENT_TYPES, JSON, TypedMessage
from pgqueue_admin.services.unattended import without_receiver


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, schema: str, table: str) -> HttpResponse:
    address, typed = Address(schema, table), _typed(request)
    if request.method != "POST":
        return _form(request, address, typed)
    try:
        message_id = typed_messages.send(
            address, typed, request.user, "console", responses.reason(request), responses.form_key(request)
        )
    except OperationNotAllowed as error:
        return _form(request, address, typed, str(error), 403)
    except OutcomeUnknown as error:
        return _form(request, address, typed, str(error), 503)
    except OperationRefused as error:
        return _form(request, address, typed, str(error), 422)
    see = Way("Find it", reverse("find_message", args=[message_id]))
    responses.done(request, f"1 message sent to {table} as {message_id}.", see)
    return responses.SeeOther(url_converters.queue(address))


def _typed(request: HttpRequest) -> TypedMessage:
    given = {name: request.POST.get(name, "") for name in ("type", "headers")}
    body = request.POST.get("body", '{"Number": 4711}')
    return TypedMessage(**given, body=body, content_type=request.POST.get("content_type", JSON))


def _form(
    request: HttpRequest, address: Address, typed: TypedMessage, fault: str = "", status: int = 200
) -> HttpResponse:
    why, problem = query_errors.read(lambda connection: typed_messages.blocking_reason(connection, address), address)
    ours = Endpoint.objects.filter(ours=True, schema=address.schema, table=address.table).first()
    allowed = acts_allowed.is_allowed(address)
    about: dict[str, Any] = {
        "address": address,
        "typed": typed,
        "fault": fault,
        "trouble": problem,
        "reason": responses.reason(request),
        "form_key": responses.next_form_key(request),
        "refusal": str(permissions.refusal_on_page(request.user, "send") or why or ""),
        "content_types": CONTENT_TYPES,
        "receiver": ours,
        "without_receiver": without_receiver([queue_database().dialect.canonical(address)]),
        "allowed": allowed,
        "foreign": not ours and not allowed,
    }
    return render(request, "pgqueue_admin/queues/detail/send.html", about, status=status)


urlpatterns = [path("queues/<name:schema>/<name:table>/send/", page, name="queue_send")]
