"""A table with rows to read, a batch of it, and the passing of its backoff."""

from datetime import timedelta
from typing import Any

from django.db.models import F

from pgqueue_admin.history.plan import planning
from pgqueue_admin.models import HistoryBatch, HistorySource
from tests.history.tables import audit, put


def waiting(connection: Any) -> HistorySource:
    source = audit(connection)
    put(connection)
    return source


def planned(connection: Any, source: HistorySource) -> HistoryBatch:
    source.refresh_from_db()
    batch = planning.plan_batch(connection, source)
    assert batch is not None
    return batch


def later(minutes: float) -> None:
    HistoryBatch.objects.update(ended_at=F("ended_at") - timedelta(minutes=minutes))
