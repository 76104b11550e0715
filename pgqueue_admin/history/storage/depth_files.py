"""Depth, rates and age in the open format: a file per folded day, by queue and minute. Without Spark."""

import logging
from datetime import UTC, date, timedelta
from pathlib import Path

import django.db
from django.db.models import Max, Min

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.history.storage import orphan_cleanup
from pgqueue_admin.history.storage.layout import DEPTH, settle
from pgqueue_admin.models import DataFile, DepthBucket, Queue, depth_history
from pgqueue_admin.models.time_grains import midnight

log = logging.getLogger(__name__)
_DAY = timedelta(days=1)
_KEPT = DataFile.Dataset.DEPTH
_DEPTHS = ("low", "median", "high")
_RATES_AND_AGE = ("in_per_second", "out_per_second", "oldest_seconds")
_COLUMNS = ("at", "queue", *_DEPTHS, *_RATES_AND_AGE, "oldest_at_least", "unread", "how")


def keep(folder: Path) -> date | None:
    """Write the oldest finished day without a file; return that day. Call again until it returns None."""
    day = _due()
    if day is None:
        return None
    path = folder / DEPTH / f"day={day}" / f"{orphan_cleanup.noted()}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = _write(day, path)
    settle(folder, [path])
    about = {"path": str(path.relative_to(folder)), "rows": rows, "bytes": path.stat().st_size}
    try:
        DataFile.objects.create(dataset=_KEPT, day=day, **about)
    except django.db.IntegrityError:  # another driver was faster
        path.unlink()
    else:
        log.info("History: depth of %s, %s minutes.", day, rows)
    return day


def _due() -> date | None:
    minutes = DepthBucket.objects.filter(grain="minute")
    last = DataFile.objects.filter(dataset=_KEPT).aggregate(day=Max("day"))["day"]
    newer = minutes.filter(at__gte=midnight(last) + _DAY) if last else minutes
    first, newest = newer.aggregate(at=Min("at"))["at"], minutes.aggregate(at=Max("at"))["at"]
    if first is None or first.astimezone(UTC).date() == newest.astimezone(UTC).date():
        return None  # minutes are folded in order: one of the next day means that this day is complete
    day: date = first.astimezone(UTC).date()
    return day


def _write(day: date, path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet

    begin = midnight(day)
    steps = DepthBucket.objects.filter(grain="minute", at__gte=begin, at__lt=begin + _DAY).order_by("queue", "at")
    names = _names()
    columns = list(zip(*steps.values_list(*_COLUMNS), strict=True))
    columns[1] = tuple(names.get(queue) for queue in columns[1])
    figures = [*(pa.int64() for _ in _DEPTHS), *(pa.float64() for _ in _RATES_AND_AGE)]
    kinds = [pa.timestamp("us", "UTC"), pa.string(), *figures, pa.bool_(), pa.int64(), pa.string()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    table = pa.Table.from_arrays(arrays, list(_COLUMNS))
    pyarrow.parquet.write_table(table, path, compression="zstd")
    return pyarrow.parquet.read_metadata(path).num_rows


def _names() -> dict[int, str]:
    """Canonical addresses by id; empty for all input queues together."""
    queues = Queue.objects.values_list("pk", "schema", "table")
    named = {pk: postgresql().canonical(Address(schema, table)) for pk, schema, table in queues}
    return {**named, depth_history.ALL: ""}
