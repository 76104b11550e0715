"""The rows of queues that exist: made when a table is found, marked when it is gone."""

from django.db.models.functions import Now

from pgqueue_admin.dialects import Address
from pgqueue_admin.monitor.judge import default_targets
from pgqueue_admin.monitor.tables import QueueTable
from pgqueue_admin.records.models import Endpoint, Queue


class Roster:
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
        for table in tables:
            self._found(table, rows.get(table.address))
        gone = [row.pk for address, row in rows.items() if address not in {table.address for table in tables}]
        Queue.objects.filter(pk__in=gone, gone_since=None).update(gone_since=Now())
        present = {table.address for table in tables}
        every = Queue.objects.values_list("pk", "schema", "table")
        self.ids = {Address(schema, name): pk for pk, schema, name in every if (schema, name) in present}
        self._written = tables

    def _found(self, table: QueueTable, row: Queue | None) -> None:
        if row is None:
            row = Queue(schema=table.address.schema, table=table.address.table, endpoint=_endpoint(table.address))
            self._take(row, table, targets=True)
        elif (row.kind, row.reason, row.seq_end, row.gone_since) != (table.kind, table.reason, table.seq_end, None):
            self._take(row, table, targets=_untouched(row))

    def _take(self, row: Queue, table: QueueTable, targets: bool) -> None:
        wanted = default_targets(table.kind) if targets else {}
        facts = {"kind": table.kind.value, "reason": table.reason, "seq_end": table.seq_end, "gone_since": None}
        for name, value in {**wanted, **facts}.items():
            setattr(row, name, value)
        row.save()


def _endpoint(address: Address) -> str:
    known = Endpoint.objects.filter(ours=True, schema=address.schema, table=address.table)
    return known.values_list("name", flat=True).first() or ""


def _untouched(row: Queue) -> bool:
    """Nobody has set targets of their own: they may follow when the kind turns out to be another."""
    had = {name: getattr(row, name) for name in default_targets("unknown")}
    return had in (default_targets("unknown"), default_targets(row.kind))
