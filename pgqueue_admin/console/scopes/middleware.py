"""Before every page: which queues this person may see, and whether the address is of one of them.

What a person may not see answers 404, like what does not exist; an act on what they may only look at answers 403.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from pgqueue_admin.archive import store
from pgqueue_admin.console import middleware
from pgqueue_admin.console.scopes import addresses
from pgqueue_admin.console.scopes.addresses import NARROWED, OF_MACHINES, name_of
from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import LEASE_NAME, VisibleQueues
from pgqueue_admin.models import Alert, Endpoint, Operation, TrialItem, crashing_messages
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.services import queue_access, schedules

NOWHERE = "There is no such queue, message, warning, operation, trial, schedule or endpoint."
_UNKNOWN = "Nothing was shown or done: whether you may see this message could not be asked. Reload to try again."


class QueuesInScope(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        """Read from the database by the first query that needs it; a probe needs none."""
        visible_queues.begin(lambda: queue_access.of(request.user))

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponse | None:
        name = name_of(request)
        if name in OF_MACHINES or (name == "metrics" and settings.SESSION_COOKIE_NAME not in request.COOKIES):
            visible_queues.end()
            return None
        try:
            seen = visible_queues.current()
            return _refused(request, name, kwargs, seen) if seen else None
        except (OperationalError, InterfaceError) as error:
            return middleware.unavailable(request, error)
        except DatabaseError:
            return HttpResponse(f"{_UNKNOWN}\n", status=503, content_type="text/plain")

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        visible_queues.end()
        return response


def _refused(request: HttpRequest, name: str, kwargs: dict[str, Any], seen: VisibleQueues) -> HttpResponse | None:
    if name not in NARROWED:
        about = addresses.refused(name)._asdict()
        return render(request, "pgqueue_admin/errors/beyond_scope.html", about, status=403)
    meant = _meant(name, kwargs)
    for each in meant:
        if not seen.sees_name(each):
            raise Http404(NOWHERE)
    for each in meant:
        if refusal := queue_access.refusal_by_name(each):
            request.user.refused_here = refusal  # type: ignore[union-attr]
            if request.method not in middleware.LOOKING:
                why = f"Nothing was done: it {refusal}."
                return render(request, "pgqueue_admin/errors/beyond_scope.html", {"why": why}, status=403)
    return None


def _meant(name: str, kwargs: dict[str, Any]) -> list[str]:
    """The queues that an address is about, as canonical addresses."""
    if "schema" in kwargs and "table" in kwargs:
        return [postgresql().canonical(Address(kwargs["schema"], kwargs["table"]))]
    if "archive_id" in kwargs:
        return [_died_in(kwargs["archive_id"])]
    if name.startswith("operation") and "number" in kwargs:
        return _acted_on_by(kwargs["number"])
    if name.startswith("endpoint") and "name" in kwargs:
        return [_received_by(kwargs["name"])]
    if "schedule_id" in kwargs:
        return [_scheduled_to(kwargs["schedule_id"])]
    if name == "trial":
        return _tried_in(kwargs["number"])
    if name in ("crashing_message", "move_out"):
        return _crashed_in(kwargs["row_id"])
    if name.startswith("alert") and "number" in kwargs:
        return [_warned_of(kwargs["number"])]
    return []


def _died_in(archive_id: int) -> str:
    with queue_database().read_session() as connection:
        found = store.followed(connection, archive_id)
    if found is None:
        raise Http404(NOWHERE)
    return found.queue or LEASE_NAME


def _scheduled_to(schedule_id: int) -> str:
    try:
        with queue_database().read_session() as connection:
            found = schedules.listed(connection, schedules.store_of(connection), schedule_id)
    except schedules.SchedulesMissing as error:
        raise Http404(NOWHERE) from error
    if not found:
        raise Http404(NOWHERE)
    return schedules.name_of_target(found[0])


def _tried_in(number: int) -> list[str]:
    """The queues of all its messages; 404 if one is gone: its queue is unknown."""
    ids = set(TrialItem.objects.filter(trial=number).values_list("archive_id", flat=True))
    with queue_database().read_session() as connection:
        found = store.queues_of(connection, ids)
    if not ids or len(found) < len(ids):
        raise Http404(NOWHERE)
    return sorted(set(found.values()))


def _received_by(endpoint: str) -> str:
    """The endpoint's input queue: an act on an endpoint is an act on that."""
    found = Endpoint._base_manager.filter(name=endpoint).first()
    if found is None:
        raise Http404(NOWHERE)
    return postgresql().canonical(Address(found.schema, found.table))


def _crashed_in(row_id: UUID) -> list[str]:
    found = crashing_messages.suspect(row_id)
    if found is None:
        raise Http404(NOWHERE)
    return [postgresql().canonical(found.address)]


def _warned_of(number: int) -> str:
    found = Alert.objects.filter(pk=number).first()
    if found is None:
        raise Http404(NOWHERE)
    return found.queue


def _acted_on_by(number: int) -> list[str]:
    found = Operation.objects.filter(pk=number).first()
    if found is None:
        raise Http404(NOWHERE)
    return [name or LEASE_NAME for name in found.queues]
