"""Stores the sampler's results: queue rows, and samples that differ from those before."""

from typing import Any

from django.db.models.functions import Now

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import Endpoint, LatestSample, Queue
from pgqueue_admin.models.queue_database import queues_in
from pgqueue_admin.monitor.queue_history import RememberedDepth
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.monitor.sampler import QueueSample
from pgqueue_admin.monitor.targets import default_targets


# The row of a queue, created with its kind's targets before the sampler finds the queue.
def row_of(schema: str, table: str, kind: TableKind, **facts: Any) -> Queue:
    """Leaves an existing row unchanged."""
    made = {"kind": kind.value, **default_targets(kind), **facts}
    return Queue.objects.get_or_create(schema=schema, table=table, defaults=made)[0]


# Rows of existing queues: created when a table is found, marked when it is gone.
_OURS = Endpoint.objects.filter(ours=True).values_list("name", "schema", "table")


class QueueRegistry:
    """Queue rows of one database. ``ids``: by address, as of the last read of its catalog."""

    def __init__(self, alias: str = "") -> None:
        self._alias = alias
        self.ids: dict[Address, int] = {}
        self._written: list[QueueTable] | None = None

    def forget(self) -> None:
        """Earlier writes may be lost: write everything next time."""
        self._written = None

    def update(self, tables: list[QueueTable]) -> None:
        """Does nothing until the sampler reads the catalog again."""
        if tables is self._written:
            return
        rows = {Address(row.schema, row.table): row for row in queues_in(self._alias)}
        owners = {Address(*where): name for name, *where in _OURS.all()}
        for table in tables:
            self._found(table, rows.get(table.address), owners.get(table.address, ""))
        present = {table.address for table in tables}
        gone = [row.pk for address, row in rows.items() if address not in present]
        Queue.objects.filter(pk__in=gone, gone_since=None).update(gone_since=Now())
        every = queues_in(self._alias).values_list("pk", "schema", "table")
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
    """Nobody changed its targets: they may follow when the kind changes."""
    had = {name: getattr(row, name) for name in default_targets("unknown")}
    return had in (default_targets("unknown"), default_targets(row.kind))


# From samples to stored rows, and which of them differ from the sample before.
def row(queue_id: int, sample: QueueSample, dead: int | None) -> LatestSample:
    """The newest figures of a readable queue."""
    depth, delayed = sample.depth, sample.delayed
    assert depth is not None
    own = depth if sample.table.kind in {TableKind.DELAYED, TableKind.LEASE} else delayed
    return LatestSample(
        queue_id=queue_id,
        at=sample.at,
        ready=depth.ready,
        in_flight=depth.in_flight,
        delayed=own.delayed if own else None,
        delayed_how=own.delayed_how if own else "counted",
        expired=depth.expired,
        dead=depth.depth if sample.table.kind is TableKind.ERROR else dead,
        depth=depth.depth,
        how=depth.how,
        head_seq=depth.head_seq,
        tail_seq=depth.tail_seq,
        sent_total=depth.sent_total,
        in_per_second=sample.in_per_second,
        out_per_second=sample.out_per_second,
        oldest_at=sample.oldest_at,
        oldest_how=sample.oldest_how,
        next_due_at=own.next_due_at if own else None,
        changed_at=sample.changed_at or sample.at,
        last_departure_at=sample.last_departure_at,
        ready_seq=depth.ready_seq,
        low_water_checked_at=sample.low_water_checked_at,
        overdue=own.overdue if own else None,
        size_bytes=sample.size_bytes,
    )


class SampleDifferences:
    """Most queues have not changed within a second: only their time is written."""

    _IGNORED = frozenset({"at", "low_water_checked_at"})

    def __init__(self) -> None:
        self._last: dict[int, tuple[Any, ...]] = {}

    def forget(self) -> None:
        self._last.clear()

    def forget_one(self, queue_id: int) -> None:
        """Its row is marked unreadable now: write its next figures even if they are unchanged."""
        self._last.pop(queue_id, None)

    def split(self, rows: list[LatestSample]) -> tuple[list[LatestSample], list[int]]:
        """Changed rows, and ids of unchanged ones."""
        facts = {each.queue_id: self._facts(each) for each in rows}
        same = [pk for pk, seen in facts.items() if self._last.get(pk) == seen]
        self._last |= facts
        unchanged = set(same)
        return [each for each in rows if each.queue_id not in unchanged], same

    def _facts(self, row: LatestSample) -> tuple[Any, ...]:
        return tuple(getattr(row, f.attname) for f in row._meta.concrete_fields if f.name not in self._IGNORED)


def remembered(address: Address) -> RememberedDepth | None:
    """What an earlier sampler stored for this queue; None if the queue was gone since: its table is another one."""
    there = LatestSample.objects.filter(queue__gone_since=None)
    found = there.filter(queue__schema=address.schema, queue__table=address.table).first()
    if found is None:
        return None
    about = ("ready_seq", "head_seq", "oldest_at", "oldest_how", "changed_at", "last_departure_at", "sent_total")
    return RememberedDepth(**{name: getattr(found, name) for name in about})
