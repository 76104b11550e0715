"""From what the sampler saw to the rows that are kept, and which of them differ from the look before."""

from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.models import LatestSample
from pgqueue_admin.monitor.queue_history import RememberedDepth
from pgqueue_admin.monitor.queue_table import TableKind
from pgqueue_admin.monitor.sampler import QueueSample


def row(queue_id: int, sample: QueueSample, dead: int | None) -> LatestSample:
    """The newest figures of a queue that could be read."""
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
        left_at=sample.left_at,
        ready_seq=depth.ready_seq,
        lowest_at=sample.lowest_at,
        overdue=own.overdue if own else None,
        size_bytes=sample.size_bytes,
    )


class SampleDifferences:
    """Most queues look as they did a second ago: of those only the time is written."""

    _IGNORED = frozenset({"at", "lowest_at"})

    def __init__(self) -> None:
        self._last: dict[int, tuple[Any, ...]] = {}

    def forget(self) -> None:
        self._last.clear()

    def forget_one(self, queue_id: int) -> None:
        """Its row says now that it could not be read: the next figures are written, even if they are the same."""
        self._last.pop(queue_id, None)

    def split(self, rows: list[LatestSample]) -> tuple[list[LatestSample], list[int]]:
        """Rows that changed, and the ids of those that did not."""
        facts = {each.queue_id: self._facts(each) for each in rows}
        same = [pk for pk, seen in facts.items() if self._last.get(pk) == seen]
        self._last |= facts
        unchanged = set(same)
        return [each for each in rows if each.queue_id not in unchanged], same

    def _facts(self, row: LatestSample) -> tuple[Any, ...]:
        return tuple(getattr(row, f.attname) for f in row._meta.concrete_fields if f.name not in self._IGNORED)


def remembered(address: Address) -> RememberedDepth | None:
    """What the sampler before us knew of this queue. Nothing of one that was gone since: its table is another."""
    there = LatestSample.objects.filter(queue__gone_since=None)
    found = there.filter(queue__schema=address.schema, queue__table=address.table).first()
    if found is None:
        return None
    about = ("ready_seq", "head_seq", "oldest_at", "oldest_how", "changed_at", "left_at", "sent_total")
    return RememberedDepth(**{name: getattr(found, name) for name in about})
