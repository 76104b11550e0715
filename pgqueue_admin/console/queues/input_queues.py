"""Input queues that are known and not gone: where a person may send a message to."""

from django.db.models import F

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.queue_table import TableKind

MOST = 500


def known(first: Address | None = None) -> list[tuple[str, Address]]:
    """By canonical name, as they are listed in a choice. ``first``: one that stands there in any case."""
    found = Queue.objects.filter(kind=TableKind.INPUT, gone_since=None).order_by(F("schema"), F("table"))[:MOST]
    addresses = [Address(each.schema, each.table) for each in found]
    if first and first not in addresses:
        addresses.insert(0, first)
    name = queue_database().dialect.canonical
    return [(name(each), each) for each in addresses if queue_database().allows(each)]
