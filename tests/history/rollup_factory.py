"""Figures of history written by hand, like a batch's of the driver."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from django.db.models import Model

from pgqueue_admin.history.rollups.copy_format import BatchRollups
from pgqueue_admin.models import FailureRollup, HistoryBatch, HistorySource, RetryOutcome, Rollup, database_clock

READ_TO = datetime(2030, 1, 1, tzinfo=UTC)  # of a table that stays readable in tests
_NAMES = {"queue": "", "endpoint": "", "type": ""}


def batch(**changes: Any) -> HistoryBatch:
    source, _ = HistorySource.objects.get_or_create(table="audit", defaults={"watermark": READ_TO})
    about = {"seq_lo": 1, "seq_hi": 1, "rows": 1, "seq_checksum": 1, "is_last": True, "watermark": database_clock.now()}
    about |= {"source": source, "state": "done", "ended_at": database_clock.now(), "kept": 1}
    return HistoryBatch.objects.create(**{**about, **changes})


def rolled_up(at: datetime, messages: int = 1, delivery: dict[int, int] | None = None, **changes: Any) -> Rollup:
    """A minute's successes, timed only by ``delivery`` (numbers by bucket)."""
    spans = {"delivery_buckets": list(delivery or {}), "delivery_counts": list((delivery or {}).values())}
    spans |= {name: [] for name in ("critical_buckets", "critical_counts", "processing_buckets", "processing_counts")}
    what = {"grain": "minute", "result": "success", "exception": "", "skewed": 0, **_NAMES}
    whose = {} if "batch" in changes else {"batch": batch()}
    return Rollup.objects.create(at=at, messages=messages, **{**what, **spans, **whose, **changes})


def failed(at: datetime, fingerprint: str, messages: int = 1, **changes: Any) -> FailureRollup:
    what = {"exception": "Shop.Refused", "message": "Card <n> refused", "first_at": at, "last_at": at, **_NAMES}
    about = {"fingerprint": fingerprint, "messages": messages}
    return FailureRollup.objects.create(batch=batch(), at=at, **about, **{**what, **changes})


def told(message_id: str, first_at: datetime, **changes: Any) -> RetryOutcome:
    what = {"exception": "Shop.Refused", "failed": 0, "succeeded": 0, **_NAMES, "type": "Shop.PlaceOrder"}
    return RetryOutcome.objects.create(batch=batch(), message_id=message_id, first_at=first_at, **{**what, **changes})


# Figures of a batch as Spark returns them, without Spark.
def figures(of: Sequence[Model]) -> BatchRollups:
    """Figures of unsaved rows, all of one model."""
    fields = of[0]._meta.concrete_fields
    names = [field.name for field in fields if field.name not in {"id", "batch"}]
    return BatchRollups(type(of[0]), pa.table({name: [getattr(each, name) for each in of] for name in names}))
