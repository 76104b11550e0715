"""An endpoint that works on the lease queue, as a managed process runs it."""

from django.conf import settings as django_settings

from pgqueue_admin.lease import LeaseWorker
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
        declared,
        settings=endpoint_settings.lease_settings_of(row),
        observer=observer,
        before_each=make_usable,
        answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
    )
