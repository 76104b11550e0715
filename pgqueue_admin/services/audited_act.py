"""Audits an act on queues, whose database differs from the audit's."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import django.db
from django.db import transaction

from pgqueue_admin.models import AuditEntry, AuditIntent
from pgqueue_admin.services import audit_intents

log = logging.getLogger(__name__)


class AuditedAct:
    """``done``: the number of messages changed, or perhaps changed, as set by the caller; 0: no entry is written."""

    def __init__(self, entry: AuditEntry):
        self.entry = entry
        self.done = 0

    def note(self, **after: Any) -> None:
        """Add to the entry's ``after``."""
        self.entry.after = {**(self.entry.after or {}), **after}


@contextmanager
def audited(
    asked: Mapping[str, Any] | None = None, claim: Callable[[AuditIntent], None] | None = None, /, **about: Any
) -> Iterator[AuditedAct]:
    """Commit an intent before the act and its audit entry after it. If the process is killed in between, the intent
    remains, and ``audit_intents.write_abandoned`` makes an entry of unknown outcome from it. If the audit fails after
    the act, the log says what was done, and the intent remains likewise.

    ``asked``: the request, stored in ``after`` of such an entry. ``claim``: called before the act; raises if the form
    was claimed by another (sent_forms). ``about``: columns of the entry.

    Raises what the act raises. Then there is no entry; raised after ``done`` was set, one of unknown outcome follows.
    """
    intent = audit_intents.keep_act({**about, "after": {**(about.get("after") or {}), **(asked or {})} or None})
    act = AuditedAct(AuditEntry(**about))
    try:
        if claim:
            claim(intent)
        with transaction.atomic(durable=True):
            audit_intents.hold(intent)
            yield act
            _write(act, intent)
    except django.db.Error as error:
        if not act.done:
            _forget(intent)
            raise
        said = f"{about['who']}: {about['verb']} {act.done} {about['noun']} of {about['subject']}, {act.entry.after}"
        log.error("What was done has no audit entry yet, and will have one of an unknown outcome. %s. %s", said, error)
    except Exception:
        if not act.done:  # else its entry is rolled back, and the intent says that something was done
            _forget(intent)
        raise


def _write(act: AuditedAct, intent: AuditIntent) -> None:
    if act.done:
        act.entry.count = act.done
        act.entry.save(force_insert=True)
    AuditIntent.objects.filter(pk=intent.pk).delete()


def _forget(intent: AuditIntent) -> None:
    """Delete the intent: nothing was done. If the audit does not answer, an entry of unknown outcome follows later."""
    with suppress(django.db.Error):
        AuditIntent.objects.filter(pk=intent.pk).delete()
