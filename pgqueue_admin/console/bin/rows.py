"""A discarded message as a line of the bin: who discarded it, why, and when it is deleted for good."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from pgqueue_admin.archive.messages import ArchivedMessage
from pgqueue_admin.console.messages.detail.archive_rows import ArchiveRow, row
from pgqueue_admin.dialects.out_of_range_times import Beyond
from pgqueue_admin.models import AuditEntry, Operation
from pgqueue_admin.services.content_access import ContentAccess

SOON = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class BinRow:
    """``gone_at``: from when retention may delete it; None: never, or unknown."""

    row: ArchiveRow
    reason: str
    operation: int | None  # an operation of this console
    gone_at: datetime | None
    now: datetime

    @property
    def is_over(self) -> bool:
        return self.gone_at is not None and self.gone_at <= self.now

    @property
    def is_soon(self) -> bool:
        return self.gone_at is not None and self.gone_at - self.now < SOON


def of(messages: Collection[ArchivedMessage], days: int, now: datetime, access: ContentAccess) -> list[BinRow]:
    """``days``: how long the archive keeps decided messages; 0: for ever."""
    operations = {each.pk: each for each in Operation.objects.filter(pk__in={each.operation for each in messages})}
    alone = _reasons([each.id for each in messages if not each.operation])
    found = []
    for each in messages:
        operation = operations.get(each.operation)
        reason = operation.reason if operation else alone.get(each.id, "")
        number = operation.pk if operation and operation.started_at else None
        found.append(BinRow(row(each, access), reason, number, _gone_at(each, days), now))
    return found


def _gone_at(message: ArchivedMessage, days: int) -> datetime | None:
    """As ``archive.retention`` prunes: by the latest of death, decision and end."""
    times = [each for each in (message.died_at, message.resolved_at, message.ended_at) if each is not None]
    if not days or not times or any(isinstance(each, Beyond) for each in times):
        return None
    return max(times) + timedelta(days=days)


def _reasons(archive_ids: list[int]) -> dict[int, str]:
    """By archive id: the reasons for which messages were taken out of their queues."""
    asked = Q()
    for each in archive_ids:
        asked |= Q(after__archive_ids__contains=each)
    if not asked:
        return {}
    entries = AuditEntry.objects.filter(asked, noun="message", verb__in=("discard", "cancel delayed")).order_by("id")
    return {number: entry.reason for entry in entries for number in (entry.after or {})["archive_ids"]}
