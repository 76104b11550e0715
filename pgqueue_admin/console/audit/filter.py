"""The audit's filter box: ``who:Ana did:retried on:Orders op:418 from:admin since:2026-11-21`` and words of reasons."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Q, QuerySet

from pgqueue_admin.console import filter_syntax
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.formatting import audit_verbs
from pgqueue_admin.models import AuditEntry
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess

FIELDS = ("who", "did", "on", "op", "from", "since", "until")


@dataclass(frozen=True)
class AuditFilter:
    """``faults``: terms that cannot be parsed; then nothing is searched."""

    text: str
    asked: Q = field(default_factory=Q)
    faults: tuple[str, ...] = ()

    @property
    def entries(self) -> QuerySet[AuditEntry]:
        """Newest first."""
        return AuditEntry.objects.none() if self.faults else AuditEntry.objects.filter(self.asked)


def read(text: str, access: ContentAccess = content_access.ALL) -> AuditFilter:
    """Do not search what may not be seen: answers would reveal it letter by letter."""
    subject = _subject if access.withheld else _any_subject
    typed = filter_syntax.read(text.replace("\0", ""), FIELDS)
    asked, faults = Q(), list(typed.faults)
    for name, value in typed.fields:
        term, fault = _term(name, value, subject)
        asked &= term
        faults += [fault] if fault else []
    for word in typed.words:
        asked &= Q(reason__icontains=word) | subject(word) | Q(who__iexact=word)
    return AuditFilter(typed.text, asked, tuple(faults))


def _any_subject(text: str) -> Q:
    return Q(subject__icontains=text)


def _subject(text: str) -> Q:
    """Without searches of the archive."""
    return Q(subject__icontains=text) & ~Q(noun="archive")


def _term(name: str, value: str, subject: Callable[[str], Q]) -> tuple[Q, str]:
    """The condition of one term, or why it cannot be parsed."""
    if not value:
        return Q(), f"put the value right after {name}: without a space."
    if name in ("since", "until"):
        at = _time(value)
        way = "at__gte" if name == "since" else "at__lt"
        return (Q(**{way: at}), "") if at else (Q(), f"{name}:{value}: write a time as 2026-11-21T09:30Z, or a day.")
    if name == "op":
        number = parse_int(value)
        return (Q(operation_id=number), "") if number else (Q(), f"op:{value}: that is no number of an operation.")
    if name == "did":
        verbs = _verbs(value)
        known = ", ".join(sorted({said.past for said in audit_verbs.ACTS.values()}))
        return (
            (Q(verb__in=verbs), "") if verbs else (Q(), f"did:{value}: nobody can have done that. There are {known}.")
        )
    if name in ("who", "on") and value.startswith("="):
        return Q(**{f"{'who' if name == 'who' else 'subject'}__iexact": value[1:]}), ""
    asked = {"who": Q(who__icontains=value), "from": Q(origin__iexact=value)}
    return asked.get(name) or subject(value) | Q(noun__iexact=value), ""


def _verbs(text: str) -> list[str]:
    """Verbs of exactly this name or past tense; otherwise those whose past tense contains it."""
    acts = audit_verbs.ACTS.items()
    if text.startswith("="):
        return [verb for verb, said in acts if said.past == text[1:]]
    exactly = [verb for verb, said in acts if text in (verb, said.past)]
    return exactly or [verb for verb, said in acts if text in said.past]


def _time(text: str) -> datetime | None:
    """Without a zone it is UTC; without a time, the beginning of the day."""
    try:
        found = datetime.fromisoformat(text.upper())
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
