"""Acts on a queue's settings: targets and ingestion. Row and audit entry share a transaction."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.models import AuditEntry, Queue
from pgqueue_admin.models.queue_database import write_refusal
from pgqueue_admin.models.queue_overview import Known
from pgqueue_admin.services.endpoint_change import ActRefused, ChangedMeanwhile
from pgqueue_admin.services.permissions import name_of

FIELDS = frozenset({"target_age_seconds", "target_depth", "target_dead", "ingest", "acts_allowed"})


class NotAnErrorQueue(ActRefused):
    """Only an error queue may be emptied into the archive: other queues hold messages for receivers."""


def save_settings(
    queue: Queue,
    changes: Mapping[str, Any],
    person: Any,
    origin: str,
    *,
    version: int | None = None,
    reason: str = "",
) -> Queue:
    """Set the fields in ``changes``. Raises ActRefused with nothing changed.
    ``version``: the version that the person saw; None: any.
    """
    with transaction.atomic():
        row = Queue.objects.select_for_update().get(pk=queue.pk)
        if version not in (None, version_of(row)):
            raise ChangedMeanwhile(row.table, history(row))
        return _change(row.pk, changes, "set", person, origin, reason)


def undo(queue: Queue, audit_id: int, person: Any, origin: str) -> Queue:
    """Restore the values before one change, if all that it set is still in force."""
    entry = history(queue).get(id=audit_id, before__isnull=False)
    with transaction.atomic():
        row = Queue.objects.select_for_update().get(pk=queue.pk)
        if any(getattr(row, field) != value for field, value in (entry.after or {}).items()):
            last = history(row).first()
            raise ActRefused(f"Nothing was changed. {last.who if last else 'Somebody'} changed {row.table} since.")
        return _change(row.pk, entry.before or {}, "undo", person, origin, f"undoes change {entry.id}")


def stands(queue: Known, entry: AuditEntry) -> bool:
    """Whether the values that a change set are still in force, so that it can be undone."""
    changed = entry.after or {}  # perhaps with settings that no longer exist
    return all(hasattr(queue, name) and getattr(queue, name) == value for name, value in changed.items())


def version_of(queue: Known | Address) -> int:
    """Return the number of the last change: the audit has each, in the same transaction. Read it before the row."""
    last = history(queue).first()
    return last.pk if last else 0


def history(queue: Known | Address) -> QuerySet[AuditEntry]:
    """Audit entries, newest first."""
    return AuditEntry.objects.filter(noun="queue", subject=subject(queue))


def subject(queue: Known | Address) -> str:
    return postgresql().canonical(Address(queue.schema, queue.table))


def _change(pk: int, changes: Mapping[str, Any], verb: str, person: Any, origin: str, reason: str) -> Queue:
    with transaction.atomic():
        row = Queue.objects.select_for_update().get(pk=pk)
        after = {field: value for field, value in changes.items() if getattr(row, field) != value}
        if after.get("ingest") and row.kind != "error":
            raise NotAnErrorQueue(f"Nothing was changed. {row.table} is no error queue.")
        address = Address(row.schema, row.table)
        if why := write_refusal(address) if after.get("ingest") or "acts_allowed" in after else "":
            raise ActRefused(f"Nothing was changed. {why}")
        if after:
            _write(row, after, verb, person, origin, reason)
        return row


def _write(row: Queue, after: dict[str, Any], verb: str, person: Any, origin: str, reason: str) -> None:
    before = {field: getattr(row, field) for field in after}
    for field, value in after.items():
        setattr(row, field, value)
    row.save(update_fields=list(after))
    who = name_of(person)
    about = {"before": before, "after": after, "reason": reason, "origin": origin}
    AuditEntry.objects.create(who=who, verb=verb, noun="queue", subject=subject(row), **about)
