"""How far history is complete, and what keeps it back."""

from dataclasses import dataclass
from datetime import datetime

from pgqueue_admin.pipeline import ledger
from pgqueue_admin.records.models import HistoryBatch, HistorySource


@dataclass(frozen=True, slots=True)
class Freshness:
    complete_to: datetime | None  # None: something has never been read to its end
    begun: bool
    open: HistoryBatch | None
    notes: tuple[str, ...]


def freshness() -> Freshness:
    return Freshness(
        complete_to=ledger.complete_to(),
        begun=HistoryBatch.objects.exists(),
        open=HistoryBatch.objects.filter(state__in=ledger.OPEN).order_by("planned_at").first(),
        notes=tuple(HistorySource.objects.exclude(note="").values_list("note", flat=True)),
    )
