"""The audit's entry of an act on queues, which are in another database than the audit."""

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
    """``done``: how much was done, or may have been, by whoever acts; 0: there is no entry."""

    def __init__(self, entry: AuditEntry):
        self.entry = entry
        self.done = 0

    def note(self, **after: Any) -> None:
        """More of what came of it."""
        self.entry.after = {**(self.entry.after or {}), **after}


@contextmanager
def audited(
    asked: Mapping[str, Any] | None = None, claim: Callable[[AuditIntent], None] | None = None, /, **about: Any
) -> Iterator[AuditedAct]:
    """An intent is committed before the act, and its entry after it: a kill between leaves the intent, and an entry is
    made of it that says so (``audit_intents.write_abandoned``). Where the audit fails after the act, the log says what
    was done, and the intent stays likewise.

    ``asked``: what such an entry says in ``after`` of what was meant. ``claim``: asked before the act, and raises where
    that is another's (sent_forms). ``about``: columns of the entry.
    Raises what the act raises, and then there is no entry.
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
        _forget(intent)
        raise


def _write(act: AuditedAct, intent: AuditIntent) -> None:
    if act.done:
        act.entry.count = act.done
        act.entry.save(force_insert=True)
    AuditIntent.objects.filter(pk=intent.pk).delete()


def _forget(intent: AuditIntent) -> None:
    """Nothing was done. Where the audit does not answer, an entry says later that this is not known."""
    with suppress(django.db.Error):
        AuditIntent.objects.filter(pk=intent.pk).delete()
