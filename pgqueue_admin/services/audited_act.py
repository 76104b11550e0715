"""The audit's entry of an act on queues, which are in another database than the audit."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django.db
from django.db import transaction

from pgqueue_admin.models import AuditEntry

log = logging.getLogger(__name__)


class AuditedAct:
    """``done``: how much was done, or may have been, by whoever acts; 0: its entry is taken back."""

    def __init__(self, entry: AuditEntry):
        self.entry = entry
        self.done = 0

    def note(self, **after: Any) -> None:
        """More of what came of it."""
        self.entry.after = {**(self.entry.after or {}), **after}


class _NothingDone(Exception):
    """Takes the entry back."""


@contextmanager
def audited(**about: Any) -> Iterator[AuditedAct]:
    """Written before the act and committed after it. Where the audit fails then, the log says what was done.

    Raises what the act raises, and then there is no entry.
    """
    act: AuditedAct | None = None
    try:
        with transaction.atomic():
            act = AuditedAct(AuditEntry.objects.create(**about))
            yield act
            if not act.done:
                raise _NothingDone
            act.entry.count = act.done
            act.entry.save(update_fields=["count", "after"])
    except _NothingDone:
        pass
    except django.db.Error as error:
        if act is None or not act.done:
            raise
        said = f"{about['who']}: {about['verb']} {act.done} {about['noun']} of {about['subject']}, {act.entry.after}"
        log.error("What was done has no audit entry. %s. %s", said, error)
