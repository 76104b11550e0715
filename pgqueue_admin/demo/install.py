"""Installs the demo shop in the embedded database: schema, queues, endpoints, targets. Idempotent."""

from pgqueue_admin.demo import contracts
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models import notify
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.transport import EndpointSettings
from pgqueue_admin.workers.processes.register_endpoint import make_queues
from pgqueue_admin.workers.sampler.sampler_store import row_of


def install() -> None:
    """Install the demo shop. Settings that a person changed since are kept."""
    _make_queues()
    for name in contracts.ENDPOINTS:
        _record(name)
    row_of(contracts.SCHEMA, "error", TableKind.ERROR, ingest=True)
    row_of(contracts.SCHEMA, "audit", TableKind.AUDIT)
    notify.announce(notify.ENDPOINT)


def _make_queues() -> None:
    with postgresql().connect(queue_database().dsn, application_name="pgqueue-admin demo") as connection:
        connection.run(postgresql().demo.create_schema(schema=contracts.SCHEMA))
    for name in contracts.ENDPOINTS:
        endpoint = make_queues(
            name,
            contracts.SCHEMA,
            EndpointSettings(error_queue=contracts.ERROR_QUEUE, audit_queue=contracts.AUDIT_QUEUE),
        )
        if name == contracts.WEB:
            endpoint.subscribe(contracts.ORDER_SHIPPED)
        endpoint.stop()


def _record(name: str) -> None:
    defaults = {
        "schema": contracts.SCHEMA,
        "table": name,
        "error_queue": contracts.ERROR_QUEUE,
        "audit_queue": contracts.AUDIT_QUEUE,
        "audit_ttbr_seconds": int(contracts.COPIES_LIVE.total_seconds()),
        "desired_processes": 1,
        "on_exhausted": "error_queue" if name == contracts.SHIPPING else "archive",
        "delayed_retries": 0,  # failures should show at once
        "concurrency": 4 if name == contracts.BILLING else 2,
    }
    Row.objects.get_or_create(name=name, defaults=defaults)
    row_of(contracts.SCHEMA, name, TableKind.INPUT, endpoint=name)
