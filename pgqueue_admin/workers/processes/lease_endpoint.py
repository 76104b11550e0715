"""An endpoint that works on the lease queue, as a managed process runs it."""

from typing import Any

from django.conf import settings as django_settings

from pgqueue_admin.lease import LeaseHandlers, LeaseWorker
from pgqueue_admin.lease.handlers import Handler, KindHandler
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.workers.processes import endpoint_settings
from pgqueue_admin.workers.processes.django_sessions import make_usable
from pgqueue_admin.workers.processes.registry import DeclaredLeaseEndpoint


def made(row: Row, declared: DeclaredLeaseEndpoint, observer: Observer) -> LeaseWorker:
    return LeaseWorker(
        row.name,
        queue_database().dsn,
        UsableSessions(declared),
        settings=endpoint_settings.lease_settings_of(row),
        observer=observer,
        answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
    )


class UsableSessions(LeaseHandlers):
    """An endpoint's handlers, each of which finds Django's sessions usable."""

    def __init__(self, handlers: LeaseHandlers):
        super().__init__(handlers.kind_of)
        self._handlers = handlers

    def of(self, kind: str | None) -> KindHandler:
        found = self._handlers.of(kind)
        return found._replace(function=_usable_around(found.function))

    @property
    def kinds(self) -> list[str]:
        return self._handlers.kinds


def _usable_around(function: Handler) -> Handler:
    def around(message: Any, lease: Any) -> Any:
        make_usable()
        return function(message, lease)

    return around
