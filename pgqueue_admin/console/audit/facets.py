"""Facets of the audit: persons, actions, objects and days of the newest entries that a filter finds."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pgqueue_admin.console.archive.facets import Facet, Facets, FacetValue
from pgqueue_admin.console.audit.filter import AuditFilter
from pgqueue_admin.formatting import audit_verbs

CAP = 10_000  # entries that are counted
MOST = 6  # names of a field
_DAY = timedelta(days=1)


class _Field(NamedTuple):
    """``name`` of an entry, and the term that finds exactly these entries; "" if no term can."""

    word: str
    name: Callable[[Any], str]
    term: Callable[[str], str]


def read(wanted: AuditFilter) -> Facets:
    rows = wanted.entries.order_by("-pk").values_list("who", "verb", "subject", "at", named=True)
    entries = list(rows[: CAP + 1])
    newest = entries[:CAP]
    facets = [_facet(field, Counter(map(field.name, newest)), wanted.text) for field in _FIELDS]
    return Facets([each for each in facets if each.values], len(newest), len(entries) > CAP)


def _facet(field: _Field, counts: Counter[str], text: str) -> Facet:
    common = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:MOST]
    values = [_value(name, number, field.term(name), text) for name, number in common]
    return Facet(field.word, values, len(counts) - len(values))


def _value(name: str, number: int, term: str, text: str) -> FacetValue:
    is_chosen = bool(term) and f" {term} " in f" {text} "
    q = f" {text} ".replace(f" {term} ", " ").strip() if is_chosen else f"{text} {term}".strip()
    return FacetValue(name or "none", name, number, q if term else "", is_chosen)


def _exactly(field: str) -> Callable[[str], str]:
    """The term ignores case, and so do the counts."""
    return lambda name: f'{field}:"={name}"' if name and '"' not in name and "\0" not in name else ""


def _of_day(day: str) -> str:
    after = datetime.fromisoformat(day) + _DAY
    return f"since:{day} until:{after.date().isoformat()}"


_FIELDS = (
    _Field("Who", lambda entry: entry.who.lower(), _exactly("who")),
    _Field("Did", lambda entry: audit_verbs.past(entry.verb), _exactly("did")),
    _Field("On", lambda entry: entry.subject.lower(), _exactly("on")),
    _Field("Day, UTC", lambda entry: entry.at.astimezone(UTC).date().isoformat(), _of_day),
)
