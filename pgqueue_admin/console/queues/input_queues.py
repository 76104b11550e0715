"""Input queues to which a person may send a message: known and not gone."""

from django.db.models import F

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Queue
from pgqueue_admin.models.queue_database import database_of, queue_database
from pgqueue_admin.monitor.queue_table import TableKind

MOST = 500


def known(first: Address | None = None, *, elsewhere: bool = False) -> list[tuple[str, Address]]:
    """Choices by canonical name. ``first``: added if missing. ``elsewhere``: also of other writable databases."""
    found = Queue.objects.filter(kind=TableKind.INPUT, gone_since=None).order_by(F("schema"), F("table"))[:MOST]
    addresses = [Address(each.schema, each.table) for each in found]
    if first and first not in addresses:
        addresses.insert(0, first)
    name = queue_database().dialect.canonical
    return [(name(each), each) for each in addresses if _is_offered(each, elsewhere)]


def _is_offered(address: Address, elsewhere: bool) -> bool:
    database = database_of(address) if elsewhere else queue_database()
    return database.is_writable and database.allows(address)
