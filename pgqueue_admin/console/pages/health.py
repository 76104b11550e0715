"""For machines: ``/healthz`` (this process answers) and ``/readyz`` (databases, sampler and workers are fresh)."""

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.db import Error
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from pgqueue_admin.dialects import errors
from pgqueue_admin.records import freshness, processes, rail
from pgqueue_admin.records.models import Endpoint, Process
from pgqueue_admin.records.source import source
from pgqueue_admin.wording.durations import duration


@login_not_required
async def alive(request: HttpRequest) -> HttpResponse:
    return HttpResponse("alive\n", content_type="text/plain")


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """200 when all is well, else 503; either way what was found, part by part."""
    found = {name: _answer(check) for name, check in CHECKS.items()}
    wrong = {name: said for name, said in found.items() if said != "ok"}
    return JsonResponse({"ready": not wrong, "parts": found}, status=503 if wrong else 200)


def _answer(check: Callable[[], str]) -> str:
    try:
        return check()
    except (Error, errors.DatabaseError) as error:
        return str(error).strip().split("\n")[0] or type(error).__name__


def _console_database() -> str:
    Process.objects.exists()
    return "ok"


def _queue_database() -> str:
    with source().reading() as connection:
        connection.value("select 1")
    return "ok"


def _sampler() -> str:
    newest = rail.newest()
    if newest is None:
        return "no sample yet"
    return f"the newest sample is {duration(freshness.age(newest))} old" if freshness.is_stale(newest) else "ok"


def _workers() -> str:
    wanted = Endpoint.objects.filter(ours=True).aggregate(all=Sum("desired_processes"))["all"] or 0
    up = processes.heard_of().filter(role="endpoint").count()
    if not processes.heard_of().filter(role="supervisor").exists():
        return f"no supervisor has reported for {duration(processes.HEARTBEAT_LOST.total_seconds())}"
    return "ok" if up >= wanted else f"{up} of {wanted} processes run"


CHECKS: dict[str, Callable[[], str]] = {
    "console database": _console_database,
    "queue database": _queue_database,
    "sampler": _sampler,
    "workers": _workers,
}
urlpatterns = [path("healthz", alive, name="healthz"), path("readyz", ready, name="readyz")]
