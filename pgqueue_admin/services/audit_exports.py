"""That somebody took entries of the audit away as a file is an entry itself."""

from typing import Any

from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services.permissions import name_of


def note(person: Any, searched: str, count: int) -> None:
    """``searched``: the filter as typed; empty: all entries."""
    subject = searched[:400] or "all entries"
    AuditEntry.objects.create(
        who=name_of(person), verb="export", noun="audit", subject=subject, count=count, origin="console"
    )
