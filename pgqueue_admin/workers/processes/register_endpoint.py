"""Registers a new managed endpoint; the supervisor starts it once its tables exist."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from django.db import transaction

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.lease_store import QUEUE
from pgqueue_admin.formatting import names
from pgqueue_admin.lease import LeaseQueueMissing
from pgqueue_admin.models import Endpoint as Row
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor import discovery
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.services import endpoints
from pgqueue_admin.services.endpoint_change import ActRefused
from pgqueue_admin.transport import Endpoint, EndpointSettings
from pgqueue_admin.workers.processes import registry
from pgqueue_admin.workers.processes.endpoint_settings import of_row
from pgqueue_admin.workers.processes.registry import DeclaredLeaseEndpoint

ALIKE = 0.5  # similarity from 0 to 1: Slaes and Sales, sales and Sales


class EndpointUnknown(ActRefused):
    """No endpoint or queue has this name. Usually a typo, whose queues would stay for ever."""


def refuse_unknown(name: str, schema: str) -> None:
    """Raises EndpointUnknown for a name without application, endpoint and queue; or a DatabaseError."""
    declared = registry.find()
    if name in declared or Row.objects.filter(name=name).exists():
        return
    with queue_database().read_session() as session:
        if discovery.find_one(session, Address(schema, name)):
            return
        tables = discovery.find(session, [schema])
    known = {*declared, *(table.address.table for table in tables if table.kind is TableKind.INPUT)}
    folded = {each.casefold(): each for each in known}
    near = [folded[each] for each in get_close_matches(name.casefold(), sorted(folded), n=3, cutoff=ALIKE)]
    nearest = f" Nearest: {names.listed(near)}." if near else ""
    raise EndpointUnknown(
        f"Nothing was made. No application of PGQUEUE_HANDLER_APPS declares {name}, "
        f"and {schema} has no queue of that name."
        f"{nearest} With --new its queues are made all the same."
    )


def enrol(name: str, facts: Mapping[str, Any], person: Any, origin: str, bodystring: bool = False) -> Row:
    """Create the row and its queues, or neither. Raises SettingsRefused for an invalid name, ActRefused, DatabaseError.

    ``bodystring``: its tables, also the error queue, get that column, which each insert pays for (T6).
    """
    declared = registry.find().get(name)
    if isinstance(declared, DeclaredLeaseEndpoint):
        return _enrol_on_lease_queue(name, {**facts, "bodystring": bodystring}, person, origin)
    instance = declared.instance if declared else ""
    with transaction.atomic():
        row = endpoints.create(name, facts, person, origin)
        settings = replace(of_row(row), create_message_body_computed_column=bodystring)
        make_queues(name, row.schema, settings, instance).stop()
    return row


def _enrol_on_lease_queue(name: str, facts: Mapping[str, Any], person: Any, origin: str) -> Row:
    """Creates only the row: the lease queue must exist."""
    given = dict(facts)
    if others := [field for field in ("error_queue", "subscription_table", "bodystring") if given.pop(field, None)]:
        raise ActRefused(f"Nothing was made. {name} works on the lease queue, which has no {' and no '.join(others)}.")
    with queue_database().read_session() as session:
        store = queue_database().dialect.leases
        if store is None or not store.is_installed(session):
            raise ActRefused(f"Nothing was made. {LeaseQueueMissing()}")
    where = {"schema": QUEUE.schema, "table": QUEUE.table}
    return endpoints.create(name, {**given, "kind": Row.Kind.LEASE, **where}, person, origin)


def make_queues(name: str, schema: str, settings: EndpointSettings, instance: str = "") -> Endpoint:
    """Create its queues and the tables of its settings where missing; the schema must exist."""
    endpoint = Endpoint(name, queue_database().dsn, schema=schema, settings=settings, instance=instance)
    endpoint.create_queues()
    return endpoint
