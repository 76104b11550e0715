"""Audit entries of acts over two databases: kept before the act sets out, written by whoever finds what came of it.

The entry is committed before the crossing is over, and an intent is made into one once: a process that is killed
anywhere leaves either an intent or an entry of what it did, never neither. An act on queues of the first database has
no crossing; whoever does it holds its intent's row until it has written the entry.
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
HELD_BY_THEN = timedelta(seconds=30)  # between the commit of an intent and the lock on it lies one round trip
NO_CROSSING = 0  # theirs begin at 1
NOT_KNOWN = {"outcome": "not known"}


class AuditSilent(DatabaseError):
    """The audit does not answer, so the act is not over."""


def keep(crossing: int, **entry: Any) -> AuditIntent:
    """Before it leaves. Raises django.db.Error: then it must not leave. ``entry``: as AuditEntry takes it."""
    return AuditIntent.objects.create(crossing=crossing, entry=entry)


def keep_act(entry: dict[str, Any]) -> AuditIntent:
    """Of an act without a crossing, before it sets out. Raises django.db.Error: then it must not."""
    return AuditIntent.objects.create(crossing=NO_CROSSING, entry=entry)


def hold(intent: AuditIntent) -> None:
    """Until the transaction ends, or its process. Raises django.db.Error, also where it was taken for abandoned."""
    if not AuditIntent.objects.select_for_update().filter(pk=intent.pk):
        raise django.db.OperationalError("The intent of this act is there no more.")


def write(crossing: int, **after: Any) -> None:
    """What came of it, into the audit; nothing where somebody has written it already. Raises AuditSilent."""
    try:
        for intent in AuditIntent.objects.filter(crossing=crossing):
            _write(intent, after)
    except django.db.Error as error:
        raise AuditSilent(f"The audit does not answer: {error}") from error


def not_known(crossing: int) -> None:
    """Whoever acted is told no more. Where the audit does not answer either, the intent stays for ``settle``."""
    with suppress(AuditSilent):
        write(crossing, **NOT_KNOWN)


def drop(crossing: int, **entry: Any) -> None:
    """Nothing arrived, or nothing was done of which the entry says this. Raises AuditSilent."""
    said = {f"entry__{name}": value for name, value in entry.items()}
    try:
        AuditIntent.objects.filter(crossing=crossing, **said).delete()
    except django.db.Error as error:
        raise AuditSilent(f"The audit does not answer: {error}") from error


def write_left_behind(connection: Connection, now: datetime | None = None) -> None:
    """Those whose crossing was ended by another console, which has no intent of it: what came of it, it knows.

    A crossing is over only after its entry is written here; so one that is there is waited for.
    """
    late = (now or database_clock.now()) - ANSWERED_ELSEWHERE
    for intent in AuditIntent.objects.filter(at__lt=late).exclude(crossing=NO_CROSSING):
        if crossings.get(connection, intent.crossing) is None:
            _write(intent, NOT_KNOWN)


def write_abandoned(now: datetime | None = None) -> None:
    """Those of acts whose process ended before it could say what came of them."""
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
