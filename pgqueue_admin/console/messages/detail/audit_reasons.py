"""What people wrote when they acted on an archived message."""

from typing import Any

from django.db.models import Q, QuerySet

from pgqueue_admin.models import AuditEntry

MOST = 20


def of(archive_id: int, events: list[Any]) -> QuerySet[AuditEntry]:
    """Newest first. ``events``: the message's own, which name the operations it was part of."""
    operations = {event.operation for event in events if event.operation}
    of_it = Q(operation_id__in=operations) | Q(verb__in=("move out", "edit"), after__archive_id=archive_id)
    of_it |= Q(verb__in=("discard", "move out", "cancel delayed"), after__archive_ids__contains=archive_id)
    return AuditEntry.objects.filter(of_it, noun="message").exclude(reason="")[:MOST]
