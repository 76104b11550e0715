"""Names of queues and endpoints on a conversation's page: one name, whichever source reports it."""

from collections import Counter
from collections.abc import Iterable

from django.urls import reverse

from pgqueue_admin.console import url_converters
from pgqueue_admin.console.messages.detail.summary import address_of
from pgqueue_admin.dialects import Address
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.models.queue_database import is_watched
from pgqueue_admin.monitor.message import StoredMessage
from pgqueue_admin.monitor.queue_table import QueueTable

LONGEST = 120  # characters of a name written by strangers


class QueueNames:
    """An endpoint is named by its queue's table. Tables of the same name also show their schemas."""

    def __init__(self, tables: Iterable[QueueTable] = ()):
        self._named = Counter(each.address.table for each in tables)

    def add(self, tables: Iterable[QueueTable]) -> None:
        self._named.update(each.address.table for each in tables)

    def of(self, address: Address) -> str:
        is_alone = self._named[address.table] < 2
        return text(address.table if is_alone else f"{address.schema}.{address.table}")

    def named(self, written: str | None) -> str:
        """The name of an address in the form that endpoints or the archive write."""
        address = address_of(written)
        return self.of(address) if address else text(written)


def text(written: str | None) -> str:
    """Mark invisible characters, and cut what is too long for a name."""
    said = escape_invisible.plain((written or "")[:LONGEST])
    return said if len(written or "") <= LONGEST else f"{said}…"


def message_path(table: QueueTable, message: StoredMessage) -> str:
    return reverse("waiting_message", args=[table.address.schema, table.address.table, message.id])


def queue_path(address: Address | None) -> str:
    """Empty if the queue has no page."""
    return url_converters.queue(address) if address and is_watched(address) else ""
