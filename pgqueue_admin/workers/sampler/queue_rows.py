"""The row of a queue, made with the targets of its kind where the sampler has not found the queue yet."""

from typing import Any

from pgqueue_admin.models import Queue
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.targets import default_targets


def row_of(schema: str, table: str, kind: TableKind, **facts: Any) -> Queue:
    """An existing row stays as it is."""
    made = {"kind": kind.value, **default_targets(kind), **facts}
    return Queue.objects.get_or_create(schema=schema, table=table, defaults=made)[0]
