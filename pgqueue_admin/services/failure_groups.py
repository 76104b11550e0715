"""What people record about a failure: owner, ticket, note, acknowledgement. Row and audit entry share a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet

from pgqueue_admin.archive import failure_groups, fingerprints
from pgqueue_admin.dialects import Connection, visible_queues
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.models import AuditEntry, FailureGroup, TeamFailure, database_clock
from pgqueue_admin.models.failure_group import LONGEST_NOTE, LONGEST_REASON, LONGEST_TICKET, FailureWords
from pgqueue_admin.services.permissions import Refusal, name_of, refusal_for

LASTS = timedelta(days=7)  # by default: no acknowledgement is permanent
LONGEST = timedelta(days=90)
LARGEST = 10**9
BATCH = 500


class FailureActRefused(Exception):
    """What was not done, and why."""


class NoSuchFailure(FailureActRefused):
    """The failure does not exist, or not in queues that the person may see."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Values to set; None leaves a field unchanged."""

    owner: str | None = None
    ticket: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class AcknowledgementEnd:
    """Exactly one of both: how long it lasts, or the number of dead messages that ends it."""

    lasts: timedelta | None = None
    count: int | None = None


def refusal(person: Any) -> Refusal | None:
    """Why this person may not annotate failures; None: they may. People of some queues only annotate for their team."""
    return refusal_for(person, "acknowledge")


def assign(connection: Connection, fingerprint: str, said: Assignment, person: Any, origin: str) -> FailureWords:
    """Set owner, ticket or note; write nothing if nothing differs. Raises FailureActRefused with nothing changed."""
    _refuse(person, "Assigning")
    wanted = {name: value for name, value in _cleaned(said).items() if value is not None}
    with transaction.atomic():
        group = _held(connection, fingerprint)
        before = {name: getattr(group, name) for name, value in wanted.items() if getattr(group, name) != value}
        if not before:
            return group
        after = {name: wanted[name] for name in before}
        for name, value in after.items():
            setattr(group, name, value)
        if "note" in after:
            group.noted_by, group.noted_at = name_of(person), database_clock.now()
        group.save()
        _audit(group, "set", person, origin, before=before, after=after)
    return group


def acknowledge(
    connection: Connection, fingerprint: str, end: AcknowledgementEnd, person: Any, origin: str, reason: str = ""
) -> FailureWords:
    """Acknowledge until a time or a count; the failure then reopens by itself. Raises FailureActRefused."""
    _refuse(person, "Acknowledging")
    now, found = database_clock.now(), failure_groups.group(connection, fingerprint)
    dead = found.dead if found else 0
    _refuse_end(end, dead)
    with transaction.atomic():
        group = _held(connection, fingerprint)
        group.acknowledged_by, group.acknowledged_at, group.acknowledged_dead = name_of(person), now, dead
        group.acknowledged_until = now + end.lasts if end.lasts else None
        group.acknowledged_to, group.acknowledged_reason = end.count, reason[:LONGEST_REASON]
        group.save()
        until = group.acknowledged_until.isoformat() if group.acknowledged_until else None
        _audit(group, "acknowledge", person, origin, reason, after={"until": until, "dead": end.count})
    return group


def withdraw(connection: Connection, fingerprint: str, person: Any, origin: str) -> None:
    """Reopen an acknowledged failure. Raises FailureActRefused."""
    _refuse(person, "Acknowledging")
    with transaction.atomic():
        if seen := visible_queues.current():
            _refuse_unreached(connection, fingerprint, seen)
        group = _rows(fingerprint).select_for_update().exclude(acknowledged_at=None).first()
        if group is None:
            raise FailureActRefused("Nothing was changed. This failure is not acknowledged.")
        group.acknowledged_by = group.acknowledged_reason = ""
        group.acknowledged_at = group.acknowledged_until = group.acknowledged_to = None
        group.save()
        _audit(group, "withdraw", person, origin)


def remember(connection: Connection) -> int:
    """Keep the cause of failures without a row; return how many were new."""
    known = set(FailureGroup.objects.values_list("pk", flat=True))
    new = [each for each in failure_groups.all_fingerprints(connection) if each not in known][:BATCH]
    rows = causes(connection, new)
    FailureGroup.objects.bulk_create(rows.values(), ignore_conflicts=True)
    return len(rows)


def causes(connection: Connection, digests: Sequence[str]) -> dict[str, FailureGroup]:
    """Return unsaved rows with what the archive holds on these failures."""
    if not (found := failure_groups.newest(connection, digests)):
        return {}
    first = failure_groups.firsts(connection, list(found))
    return {digest: _of_row(digest, row, first.get(digest)) for digest, row in found.items()}


def _of_row(digest: str, row: Any, first_at: datetime | None) -> FailureGroup:
    said = fingerprints.of_row(row, settings.PGQUEUE["OWN_CODE"])
    return FailureGroup(
        fingerprint=digest,
        exception=said.exception[:400],
        frame=said.frame or "",
        message=said.message or "",
        first_at=first_at,
    )


def _rows(fingerprint: str) -> QuerySet[Any]:
    """The row that this person reads and writes: the one of all queues, or their team's."""
    if visible_queues.current() is None:
        return FailureGroup.objects.filter(pk=fingerprint)
    return TeamFailure.objects.filter(fingerprint=fingerprint)


def _held(connection: Connection, fingerprint: str) -> FailureWords:
    """Return the failure's row, locked; create it if missing."""
    if seen := visible_queues.current():
        _refuse_unreached(connection, fingerprint, seen)
        TeamFailure.objects.bulk_create(
            [TeamFailure(fingerprint=fingerprint, team=list(seen.team))], ignore_conflicts=True
        )
    elif not _rows(fingerprint).exists():
        cause = causes(connection, [fingerprint]).get(fingerprint)
        if cause is None:
            raise NoSuchFailure("Nothing was changed. There is no such failure in the archive.")
        FailureGroup.objects.bulk_create([cause], ignore_conflicts=True)
    held: FailureWords = _rows(fingerprint).select_for_update().get()
    return held


def _refuse_unreached(connection: Connection, fingerprint: str, seen: VisibleQueues) -> None:
    """Refuse unless the failure occurs in a queue that they may act on."""
    if failure_groups.group(connection, fingerprint) is None:
        raise NoSuchFailure("Nothing was changed. There is no such failure in the archive.")
    with visible_queues.within(seen.acted_on_alone):
        if failure_groups.group(connection, fingerprint) is None:
            raise FailureActRefused(
                "Nothing was changed. It needs a group that may act on its queues: yours may only look."
            )


def _cleaned(said: Assignment) -> dict[str, str | None]:
    most = {"owner": 150, "ticket": LONGEST_TICKET, "note": LONGEST_NOTE}
    given = {name: getattr(said, name) for name in most}
    return {
        name: None if value is None else value.replace("\0", "").strip()[: most[name]] for name, value in given.items()
    }


def _refuse(person: Any, what: str) -> None:
    if why := refusal(person):
        raise FailureActRefused(f"Nothing was changed. {what} {why}.")


def _refuse_end(end: AcknowledgementEnd, dead: int) -> None:
    if (end.lasts is None) == (end.count is None):
        raise FailureActRefused("Nothing was acknowledged. Choose one end: a time or a count.")
    if end.lasts is not None and not timedelta() < end.lasts <= LONGEST:
        raise FailureActRefused(f"Nothing was acknowledged. Choose an end within the next {LONGEST.days} days.")
    if end.count is not None and not dead < end.count <= LARGEST:
        raise FailureActRefused(f"Nothing was acknowledged. Choose a count above the {dead:,} that are dead now.")


def _audit(
    group: FailureWords,
    verb: str,
    person: Any,
    origin: str,
    reason: str = "",
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    about: dict[str, Any] = {"before": before, "after": after, "reason": reason, "origin": origin}
    if isinstance(group, TeamFailure):
        names = Group.objects.filter(pk__in=group.team).order_by("name").values_list("name", flat=True)
        about["after"] = {**(after or {}), "team": " + ".join(names)}
    subject = group.fingerprint  # type: ignore[attr-defined]  # of both kinds
    AuditEntry.objects.create(who=name_of(person), verb=verb, noun="failure", subject=subject, **about)
