"""The rows of queues that exist: made when a table is found, marked when it is gone."""

from typing import Any

from django.db.models.functions import Now

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint, Queue
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.monitor.targets import default_targets

_OURS = Endpoint.objects.filter(ours=True).values_list("name", "schema", "table")


class QueueRegistry:
    """``ids``: the queue rows by address, as of the newest look at the catalog."""

    def __init__(self) -> None:
        self.ids: dict[Address, int] = {}
        self._written: list[QueueTable] | None = None

    def forget(self) -> None:
        """What was written may not be there any more: write all of it next time."""
        self._written = None

    def update(self, tables: list[QueueTable]) -> None:
        """Costs nothing while the sampler has not looked at the catalog again."""
        if tables is self._written:
            return
        rows = {Address(row.schema, row.table): row for row in Queue.objects.all()}
        owners = {Address(*where): name for name, *where in _OURS.all()}
        for table in tables:
            self._found(table, rows.get(table.address), owners.get(table.address, ""))
        present = {table.address for table in tables}
        gone = [row.pk for address, row in rows.items() if address not in present]
        Queue.objects.filter(pk__in=gone, gone_since=None).update(gone_since=Now())
        every = Queue.objects.values_list("pk", "schema", "table")
        self.ids = {Address(schema, name): pk for pk, schema, name in every if (schema, name) in present}
        self._written = tables

    def _found(self, table: QueueTable, row: Queue | None, owner: str) -> None:
        facts: dict[str, Any] = {"kind": table.kind.value, "reason": table.reason, "endpoint": owner}
        facts |= {"seq_end": table.seq_end, "gone_since": None}
        if row is None:
            row = Queue(schema=table.address.schema, table=table.address.table)
            self._take(row, {**default_targets(table.kind), **facts})
        elif any(getattr(row, name) != value for name, value in facts.items()):
            self._take(row, {**(default_targets(table.kind) if _untouched(row) else {}), **facts})

    def _take(self, row: Queue, facts: dict[str, Any]) -> None:
        for name, value in facts.items():
            setattr(row, name, value)
        row.save(update_fields=None if row.pk is None else list(facts))  # targets may have been set since it was read


def _untouched(row: Queue) -> bool:
    """Nobody has set targets of their own: they may follow when the kind turns out to be another."""
    had = {name: getattr(row, name) for name in default_targets("unknown")}
    return had in (default_targets("unknown"), default_targets(row.kind))
