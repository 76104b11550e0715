"""The row of a queue, made with the targets of its kind where the sampler has not found the queue yet."""

from typing import Any

from pgqueue_admin.monitor.judge import default_targets
from pgqueue_admin.monitor.tables import Kind
from pgqueue_admin.records.models import Queue


def row_of(schema: str, table: str, kind: Kind, **facts: Any) -> Queue:
    """An existing row stays as it is."""
    made = {"kind": kind.value, **default_targets(kind), **facts}
    return Queue.objects.get_or_create(schema=schema, table=table, defaults=made)[0]
