"""Which tables history is read from: our archive where it is, and audit queues that were found."""

from pgqueue_admin.dialects import Address, Connection
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.records import clock
from pgqueue_admin.records.models import HistorySource, Queue

ARCHIVE = "messages.message_archive"
SNAPSHOTS, NUMBERS = "snapshots", "numbers"


def sources(connection: Connection) -> list[HistorySource]:
    """A row of the ledger for each, made when a table is first seen; what is gone is marked so."""
    audits = Queue.objects.filter(kind="audit", gone_since=None)
    named = [(postgresql().canonical(Address(queue.schema, queue.table)), NUMBERS) for queue in audits]
    if connection.value(postgresql().pipeline.has_archive()):
        named.insert(0, (ARCHIVE, SNAPSHOTS))
    HistorySource.objects.exclude(table__in=[table for table, _ in named]).update(is_there=False)
    HistorySource.objects.filter(is_there=False, table__in=[table for table, _ in named]).update(is_there=True)
    return [HistorySource.objects.get_or_create(table=table, defaults={"way": way})[0] for table, way in named]


def is_held(source: HistorySource) -> bool:
    """Whether somebody cancelled, and has not asked for it again."""
    return source.held_until is not None and source.held_until > clock.now()
