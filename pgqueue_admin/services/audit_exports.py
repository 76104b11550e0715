"""That somebody took entries of the audit, or messages, away as a file is an entry itself."""

import logging
from collections.abc import Sequence
from typing import Any

import django.db
from django.core.exceptions import SynchronousOnlyOperation

from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import content_access
from pgqueue_admin.services.permissions import name_of

NOT_ENDED = "not yet, or with its process, or before its first byte"
_LONGEST = 400  # letters of a subject; a search may have more

log = logging.getLogger(__name__)


def note(person: Any, searched: str, count: int) -> None:
    """``searched``: the filter as typed; empty: all entries."""
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
    """Of an export of the archive, before its first message goes out: it may never be ended by us. ``fields``: of
    bodies, which it has as columns.
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
    """The file outlasts the minutes for which they were."""
    return {"masked parts": "revealed"} if content_access.of(person).revealed_until else {}


def searched_of(entry: AuditEntry) -> str:
    """What was asked for, whole: of an entry of ``begin``."""
    return str((entry.after or {}).get("q", entry.subject))


def _subject(searched: str) -> str:
    return searched if len(searched) <= _LONGEST else f"{searched[: _LONGEST - 1]}…"


def _whole(searched: str) -> dict[str, str]:
    """Beside a subject that is cut: by its start alone it would be another search, which finds more."""
    return {"q": searched} if len(searched) > _LONGEST else {}


def end(entry: AuditEntry, count: int, how: str) -> None:
    """How many went out, and ``whole`` or why not. Where the audit fails then, the log says it."""
    entry.count, entry.after = count, {**(entry.after or {}), "ended": how}
    try:
        entry.save(update_fields=["count", "after"])
    except (django.db.Error, SynchronousOnlyOperation) as error:  # the latter: gone before its answer, in the loop
        said = f"{entry.who}: exported {count} messages of {entry.subject!r}, {how}"
        log.error("How an export ended is not in the audit. %s. %s", said, error)
