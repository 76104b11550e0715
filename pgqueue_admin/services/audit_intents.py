"""Audit intents: entries stored before an act starts, turned into audit entries by the process that learns its outcome.

The entry is committed before the crossing ends, and each intent becomes one entry once. A process killed at any point
leaves either an intent or an entry of what it did, never neither. An act on queues of the first database has no
crossing: its process locks the intent's row until it has written the entry.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import django.db
from django.db import transaction

from pgqueue_admin.archive import crossings
from pgqueue_admin.dialects import Connection
from pgqueue_admin.dialects.errors import DatabaseError
from pgqueue_admin.models import AuditEntry, AuditIntent, database_clock

ANSWERED_ELSEWHERE = timedelta(minutes=10)
HELD_BY_THEN = timedelta(seconds=30)  # an intent is locked one round trip after its commit
NO_CROSSING = 0  # ids of crossings begin at 1
NOT_KNOWN = {"outcome": "not known"}


class AuditSilent(DatabaseError):
    """The audit does not answer, so the act is not over."""


def keep(crossing: int, **entry: Any) -> AuditIntent:
    """Store the intent before a crossing leaves. If it raises django.db.Error, the crossing must not leave.
    ``entry``: columns of AuditEntry.
    """
    return AuditIntent.objects.create(crossing=crossing, entry=entry)


def keep_act(entry: dict[str, Any]) -> AuditIntent:
    """Store the intent of an act without a crossing before it starts; if this raises django.db.Error, it must not."""
    return AuditIntent.objects.create(crossing=NO_CROSSING, entry=entry)


def hold(intent: AuditIntent) -> None:
    """Lock the intent until the transaction or its process ends. Raises django.db.Error, also if taken for
    abandoned.
    """
    if not AuditIntent.objects.select_for_update().filter(pk=intent.pk):
        raise django.db.OperationalError("The intent of this act is there no more.")


def write(crossing: int, **after: Any) -> None:
    """Turn the intents of a crossing into audit entries; do nothing if that is done already. Raises AuditSilent."""
    try:
        for intent in AuditIntent.objects.filter(crossing=crossing):
            _write(intent, after)
    except django.db.Error as error:
        raise AuditSilent(f"The audit does not answer: {error}") from error


def not_known(crossing: int) -> None:
    """Record an unknown outcome; the person gets no other answer. If the audit fails too, ``settle`` finds
    the intent.
    """
    with suppress(AuditSilent):
        write(crossing, **NOT_KNOWN)


def drop(crossing: int, **entry: Any) -> None:
    """Delete intents of a crossing that delivered nothing, or those matching ``entry``, of which nothing was done.
    Raises AuditSilent.
    """
    said = {f"entry__{name}": value for name, value in entry.items()}
    try:
        AuditIntent.objects.filter(crossing=crossing, **said).delete()
    except django.db.Error as error:
        raise AuditSilent(f"The audit does not answer: {error}") from error


def write_left_behind(connection: Connection, now: datetime | None = None) -> None:
    """Write entries with an unknown outcome for crossings that another console ended: it has no intent of them.

    A crossing ends only after its entry is written here, so an intent waits while its crossing exists.
    """
    late = (now or database_clock.now()) - ANSWERED_ELSEWHERE
    for intent in AuditIntent.objects.filter(at__lt=late).exclude(crossing=NO_CROSSING):
        if crossings.get(connection, intent.crossing) is None:
            _write(intent, NOT_KNOWN)


def write_abandoned(now: datetime | None = None) -> None:
    """Write entries with an unknown outcome for acts whose process died before it recorded one."""
    late = (now or database_clock.now()) - HELD_BY_THEN
    for pk in AuditIntent.objects.filter(crossing=NO_CROSSING, at__lt=late).values_list("pk", flat=True):
        with transaction.atomic():
            for intent in AuditIntent.objects.select_for_update(skip_locked=True).filter(pk=pk):
                _write(intent, {**NOT_KNOWN, "set_out": intent.at.isoformat(timespec="seconds")})


def _write(intent: AuditIntent, after: dict[str, Any]) -> None:
    entry = intent.entry
    with transaction.atomic():
        mine, _ = AuditIntent.objects.filter(pk=intent.pk).delete()
        if mine:
            AuditEntry.objects.create(**{**entry, "after": {**(entry.get("after") or {}), **after}})
