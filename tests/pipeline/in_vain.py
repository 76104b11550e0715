"""A table that has something to read, a batch of it, and the time that its rest takes."""

from datetime import timedelta
from typing import Any

from django.db.models import F

from pgqueue_admin.pipeline.plan import planning
from pgqueue_admin.records.models import HistoryBatch, HistorySource
from tests.pipeline.tables import audit, put


def waiting(connection: Any) -> HistorySource:
    source = audit(connection)
    put(connection)
    return source


def planned(connection: Any, source: HistorySource) -> HistoryBatch:
    source.refresh_from_db()
    batch = planning.plan(connection, source)
    assert batch is not None
    return batch


def later(minutes: float) -> None:
    HistoryBatch.objects.update(ended_at=F("ended_at") - timedelta(minutes=minutes))
