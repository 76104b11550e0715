"""Puts the demo shop into the embedded database: schema, queues, endpoints, targets. A second time changes nothing."""

from pgqueue_admin.demo import shop
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.monitor.tables import Kind
from pgqueue_admin.records import notify
from pgqueue_admin.records.models import Endpoint as Row
from pgqueue_admin.records.source import source
from pgqueue_admin.transport import EndpointSettings
from pgqueue_admin.workers.enrolment import make_queues
from pgqueue_admin.workers.queue_rows import row_of


def install() -> None:
    """What a person has changed since stays as they left it."""
    _make_queues()
    for name in shop.ENDPOINTS:
        _record(name)
    row_of(shop.SCHEMA, "error", Kind.ERROR, ingest=True)
    row_of(shop.SCHEMA, "audit", Kind.AUDIT)
    notify.announce(notify.ENDPOINT)


def _make_queues() -> None:
    with postgresql().connect(source().dsn, application_name="pgqueue-admin demo") as connection:
        connection.run(postgresql().demo.create_schema(schema=shop.SCHEMA))
    for name in shop.ENDPOINTS:
        endpoint = make_queues(
            name, shop.SCHEMA, EndpointSettings(error_queue=shop.ERROR_QUEUE, audit_queue=shop.AUDIT_QUEUE)
        )
        if name == shop.WEB:
            endpoint.subscribe(shop.ORDER_SHIPPED)
        endpoint.stop()


def _record(name: str) -> None:
    defaults = {
        "schema": shop.SCHEMA,
        "table": name,
        "error_queue": shop.ERROR_QUEUE,
        "audit_queue": shop.AUDIT_QUEUE,
        "audit_ttbr_seconds": int(shop.COPIES_LIVE.total_seconds()),
        "desired_processes": 1,
        "on_exhausted": "error_queue" if name == shop.SHIPPING else "archive",
        "delayed_retries": 0,  # what goes wrong is to be seen at once
        "concurrency": 4 if name == shop.BILLING else 2,
    }
    Row.objects.get_or_create(name=name, defaults=defaults)
    row_of(shop.SCHEMA, name, Kind.INPUT, endpoint=name)
