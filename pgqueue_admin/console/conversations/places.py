"""What a page calls the queue or endpoint that a message is for: by one name, whichever source says it."""

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

LONGEST = 120  # characters of a name that strangers wrote


class QueueNames:
    """An endpoint is called as its queue's table; tables of one name are told apart by their schemas."""

    def __init__(self, tables: Iterable[QueueTable] = ()):
        self._named = Counter(each.address.table for each in tables)

    def add(self, tables: Iterable[QueueTable]) -> None:
        self._named.update(each.address.table for each in tables)

    def of(self, address: Address) -> str:
        is_alone = self._named[address.table] < 2
        return text(address.table if is_alone else f"{address.schema}.{address.table}")

    def named(self, written: str | None) -> str:
        """Of an address as endpoints or the archive write it."""
        address = address_of(written)
        return self.of(address) if address else text(written)


def text(written: str | None) -> str:
    """Characters without a shape are marked, and what is longer than a name is cut."""
    said = escape_invisible.plain((written or "")[:LONGEST])
    return said if len(written or "") <= LONGEST else f"{said}…"


def message_path(table: QueueTable, message: StoredMessage) -> str:
    return reverse("waiting_message", args=[table.address.schema, table.address.table, message.id])


def queue_path(address: Address | None) -> str:
    """Empty where there is no page of it."""
    return url_converters.queue(address) if address and is_watched(address) else ""
