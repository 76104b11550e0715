"""An endpoint with a queue of its own, as a managed process runs it."""

from django.conf import settings as django_settings

from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport import Endpoint
from pgqueue_admin.transport.handling.behaviours import BehaviourChain
from pgqueue_admin.transport.ports import Observer
from pgqueue_admin.workers.processes import endpoint_settings
from pgqueue_admin.workers.processes.django_sessions import kept_usable
from pgqueue_admin.workers.processes.exhausted_port import archive_failed
from pgqueue_admin.workers.processes.registry import DeclaredEndpoint
from pgqueue_admin.workers.processes.retried_port import MarkingHandlers


def made(row: Row, declared: DeclaredEndpoint, observer: Observer) -> Endpoint:
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
        pipeline=BehaviourChain(behaviours=(kept_usable,)) | declared.pipeline,
        answer_seconds=django_settings.PGQUEUE["ANSWER_SECONDS"],
    )
