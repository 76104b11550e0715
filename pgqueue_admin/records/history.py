"""What people ask of the history: to be read now. A time in a row, picked up by whoever reads."""

from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from pgqueue_admin.records.models import AuditEntry, HistorySource


@transaction.atomic
def read_now(person: Any, origin: str) -> None:
    HistorySource.objects.update(wanted_at=Now())
    AuditEntry.objects.create(who=person.get_username(), verb="run", noun="pipeline", subject="history", origin=origin)


def wanted_now() -> bool:
    """Whether somebody asked since it was last looked at."""
    return HistorySource.objects.exclude(wanted_at=None).exclude(looked_at__gte=F("wanted_at")).exists()
