"""Probes: ``/healthz`` (this process answers) and ``/readyz`` (databases, sampler and workers are healthy)."""

import logging
from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.db import Error, connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from pgqueue_admin.dialects import errors
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.formatting.durations import duration
from pgqueue_admin.models import Process, navigation_counts, processes, readability, staleness
from pgqueue_admin.models.db_backend.base import of_its_own
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.models.raw_sql import rows_of

log = logging.getLogger("pgqueue.health")
_logged: set[str] = set()


@login_not_required
async def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("alive\n", content_type="text/plain")


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """200 if every check passes, else 503; both list the result of each check.

    ``?for=web`` checks only what this web process needs to show pages. A silent sampler or unreadable queues must not
    take a page out of the load balancer when it is needed most.
    """
    asked = NEEDED_BY_WEB if request.GET.get("for") == "web" else CHECKS
    with of_its_own(connections["default"]):
        found = {name: _answer(name, check) for name, check in asked.items()}
        wrong = {name: said for name, said in found.items() if said != "ok"}
        shown = (
            found
            if not wrong or _is_signed_in(request)
            else {name: _to_strangers(said) for name, said in found.items()}
        )
    return JsonResponse({"ready": not wrong, "parts": shown}, status=503 if wrong else 200)


class HealthDetail(str):
    """An error message of the database or driver with hosts, ports, roles: for the log and signed-in persons only."""


def _answer(name: str, check: Callable[[], str]) -> str:
    try:
        said = check()
        _logged.discard(name)
    except (Error, errors.DatabaseError) as error:
        said = HealthDetail(str(error).strip().split("\n")[0] or type(error).__name__)
        if name not in _logged:  # once per outage: a probe asks every few seconds
            log.warning("Not ready, %s: %s", name, said)
        _logged.add(name)
    return said


def _to_strangers(said: str) -> str:
    return (
        "it does not answer, or refuses: the log of the web process says more"
        if isinstance(said, HealthDetail)
        else said
    )


def _is_signed_in(request: HttpRequest) -> bool:
    try:
        return request.user.is_authenticated
    except Error:  # sessions cannot be read while their database is down
        return False


def _console_database_is_read() -> str:
    """Whether the console's database can be read: pages are shown even while it is read-only."""
    Process.objects.exists()
    return "ok"


def _console_database() -> str:
    Process.objects.exists()
    ((takes_writes,),) = rows_of(postgresql().server.takes_writes())
    return "ok" if takes_writes else "it takes no writes now"


def _queue_database() -> str:
    with queue_database().probe_session() as connection:
        connection.value("select 1")
    return "ok"


def _sampler() -> str:
    newest = navigation_counts.newest()
    if newest is None:
        return "no sample yet"
    return f"the newest sample is {duration(staleness.age(newest))} old" if staleness.is_stale(newest) else "ok"


def _queues() -> str:
    seen = readability.current()
    return f"{seen.unread:,} of {seen.of:,} cannot be read" if seen.is_blind else "ok"


def _workers() -> str:
    staffed = processes.by_endpoint()
    wanted, up = sum(each.want for each in staffed), sum(each.filled for each in staffed)
    if not processes.heard_of().filter(role="supervisor").exists():
        return f"no supervisor has reported for {duration(processes.HEARTBEAT_LOST.total_seconds())}"
    return "ok" if up >= wanted else f"{up} of {wanted} processes run"


CHECKS: dict[str, Callable[[], str]] = {
    "console database": _console_database,
    "queue database": _queue_database,
    "sampler": _sampler,
    "queues": _queues,
    "workers": _workers,
}
NEEDED_BY_WEB: dict[str, Callable[[], str]] = {"console database": _console_database_is_read}
urlpatterns = [path("healthz", alive, name="healthz"), path("readyz", ready, name="readyz")]
