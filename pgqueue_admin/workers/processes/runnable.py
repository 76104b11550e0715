"""What a managed process runs: an endpoint of either kind."""

from typing import Protocol, TypeVar

from django.conf import settings as django_settings

from pgqueue_admin.lease import LeaseWorker
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.transport.sessions.circuit_breaker import CircuitBreakers
from pgqueue_admin.workers.processes import endpoint_settings
from pgqueue_admin.workers.processes.archive_ports import MarkingHandlers, archive_failed
from pgqueue_admin.workers.processes.django_sessions import joining, make_usable
from pgqueue_admin.workers.processes.registry import DeclaredEndpoint, DeclaredLeaseEndpoint

Settings = TypeVar("Settings", contravariant=True)


class Runnable(Protocol[Settings]):
    """Implemented by ``transport.Endpoint`` and ``lease.LeaseWorker``, which work in threads of their own."""

    @property
    def breakers(self) -> CircuitBreakers:
        """Open circuit breakers: what fails behind them, and for how long."""

    @property
    def in_flight(self) -> int:
        """Number of messages being handled now."""

    def start(self) -> None:
        """Waits for a database that is down. Raises QueueUnfit for tables that it cannot work on."""

    def wait(self) -> None:
        """Block until it is stopped."""

    def stop(self, drain_seconds: float = ...) -> bool:
        """Receive nothing new, finish what is in flight. False: some was not finished in time."""

    def pause(self) -> None:
        """Receive nothing new; also before ``start``."""

    def resume(self) -> None: ...

    def apply(self, settings: Settings) -> None:
        """While it runs; messages in flight finish under the old settings. Raises SettingsRefused."""


# An endpoint on the lease queue.
def lease_worker(row: Row, declared: DeclaredLeaseEndpoint, observer: Observer) -> LeaseWorker:
    return LeaseWorker(
        row.name,
        queue_database().dsn,
        declared,
        settings=endpoint_settings.lease_settings_of(row),
        observer=observer,
        before_each=make_usable,
        answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
    )


# An endpoint with a queue of its own.
def transport_endpoint(row: Row, declared: DeclaredEndpoint, observer: Observer) -> Endpoint:
    return Endpoint(
        row.name,
        queue_database().dsn,
        settings=endpoint_settings.of_row(row),
        handlers=MarkingHandlers(declared, row.name),
        exhausted=archive_failed,
        observer=observer,
        schema=row.schema,
        instance=declared.instance,
        serializers=declared.serializers,
        pipeline=joining(declared, has_outbox=row.outbox != Row.Outbox.OFF) | declared.pipeline,
        answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
    )
