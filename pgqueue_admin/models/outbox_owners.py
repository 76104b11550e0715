"""Outbox tables of our own endpoints, by address."""

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.models.endpoint import Endpoint
from pgqueue_admin.models.queue_database import queue_database


def by_table() -> dict[Address, Endpoint]:
    owners = {}
    for row in Endpoint.objects.filter(ours=True).exclude(outbox=Endpoint.Outbox.OFF):
        if not row.has_outbox:
            continue
        try:
            owners[queue_database().dialect.outbox_address(row.name, row.schema)] = row
        except AddressUnreadable:
            continue
    return owners
