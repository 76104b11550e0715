"""Audit entries of exports: taking audit entries or messages away as a file is itself audited."""

import logging
from collections.abc import Sequence
from typing import Any

import django.db
from django.core.exceptions import SynchronousOnlyOperation

from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import content_access
from pgqueue_admin.services.permissions import name_of

NOT_ENDED = "not yet, or with its process, or before its first byte"
_LONGEST = 400  # characters of a subject; a search may be longer

log = logging.getLogger(__name__)


def note(person: Any, searched: str, count: int) -> None:
    """Write the entry of an export of the audit. ``searched``: the filter as typed; empty: all entries."""
    AuditEntry.objects.create(
        who=name_of(person),
        verb="export",
        noun="audit",
        subject=_subject(searched) or "all entries",
        count=count,
        after=_whole(searched) or None,
        origin="console",
    )


def begin(person: Any, searched: str, format: str, fields: Sequence[str] = ()) -> AuditEntry:
    """Write the entry of an archive export before its first message is sent: the process may die before the export
    ends.
    ``fields``: body fields exported as columns.
    """
    return AuditEntry.objects.create(
        who=name_of(person),
        verb="export",
        noun="archive",
        subject=_subject(searched),
        count=0,
        after={"format": format, "ended": NOT_ENDED, **_fields(fields), **_revealed(person), **_whole(searched)},
        origin="console",
    )


def _fields(names: Sequence[str]) -> dict[str, str]:
    return {"fields of bodies": ", ".join(names)} if names else {}


def _revealed(person: Any) -> dict[str, str]:
    """Note that masked parts were revealed: the file outlasts the minutes of the reveal."""
    return {"masked parts": "revealed"} if content_access.of(person).revealed_until else {}


def searched_of(entry: AuditEntry) -> str:
    """Return the whole search of an entry written by ``begin``."""
    return str((entry.after or {}).get("q", entry.subject))


def _subject(searched: str) -> str:
    return searched if len(searched) <= _LONGEST else f"{searched[: _LONGEST - 1]}…"


def _whole(searched: str) -> dict[str, str]:
    """Keep the whole search beside a cut subject: the cut one would be another search, which finds more."""
    return {"q": searched} if len(searched) > _LONGEST else {}


def end(entry: AuditEntry, count: int, how: str) -> None:
    """Record the number of messages sent, and ``whole`` or why it stopped. If the audit fails, log it instead."""
    entry.count, entry.after = count, {**(entry.after or {}), "ended": how}
    try:
        entry.save(update_fields=["count", "after"])
    except (django.db.Error, SynchronousOnlyOperation) as error:  # the latter: client gone, in the event loop
        said = f"{entry.who}: exported {count} messages of {entry.subject!r}, {how}"
        log.error("How an export ended is not in the audit. %s. %s", said, error)
