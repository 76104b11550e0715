"""A new endpoint of ours: its queue tables, then its row, which the supervisor acts on."""

from typing import Any

from pgqueue_admin.records import endpoints
from pgqueue_admin.records.models import Endpoint as Row
from pgqueue_admin.records.source import source
from pgqueue_admin.transport import Endpoint, EndpointSettings


def enrol(name: str, schema: str, processes: int, error_queue: str, person: Any, origin: str) -> Row:
    """Raises SettingsRefused for a name that cannot be, an ActRefused, or a DatabaseError."""
    make_queues(name, schema, error_queue).stop()
    facts = {"schema": schema, "desired_processes": processes, "error_queue": error_queue}
    return endpoints.create(name, facts, person, origin)


def make_queues(name: str, schema: str, error_queue: str = "", audit_queue: str = "") -> Endpoint:
    """Input, error and audit queue and subscription table, where they are missing; the schema has to be there."""
    settings = EndpointSettings(error_queue=error_queue or EndpointSettings().error_queue, audit_queue=audit_queue)
    endpoint = Endpoint(name, source().dsn, schema=schema, settings=settings)
    endpoint.create_queues()
    return endpoint
