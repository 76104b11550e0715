"""The filter box of Warnings: words, ``queue:``, ``kind:`` and ``severity:``, as a database query."""

from dataclasses import dataclass

from django.db.models import Q

from pgqueue_admin.alerts.kinds import KINDS
from pgqueue_admin.console import filter_syntax
from pgqueue_admin.models import Alert

FIELDS = ("queue", "kind", "severity")
SEVERITIES = tuple(Alert.Severity.values)
_SHOWN = ("sentence", "queue", "subject", "cause")


@dataclass
class AlertFilter(filter_syntax.FilterTerms):
    """The filter of a list of warnings."""

    @property
    def where(self) -> Q:
        wanted = Q()
        for word in self.words:
            named = Q(kind__in=_kinds(word))
            for column in _SHOWN:
                named |= Q(**{f"{column}__icontains": word})
            wanted &= named
        for name, value in self.fields:
            wanted &= _holds(name, value)
        return wanted


def read(text: str) -> AlertFilter:
    """Kinds are named by their titles, with hyphens: ``kind:oldest-ready``."""
    typed = filter_syntax.read(text, FIELDS)
    faults = [
        f"There is no severity:{value}. Use {' or '.join(f'severity:{each}' for each in SEVERITIES)}"
        for name, value in typed.fields
        if name == "severity" and value not in SEVERITIES
    ]
    faults += [
        f"There is no kind:{value}. Use one of {', '.join(sorted(map(_slug, (kind.title for kind in KINDS))))}"
        for name, value in typed.fields
        if name == "kind" and not _kinds(value)
    ]
    return AlertFilter(typed.text, typed.words, typed.fields, typed.faults + faults)


def _holds(name: str, value: str) -> Q:
    if name == "severity":
        return Q(severity=value)
    if name == "kind":
        return Q(kind__in=_kinds(value))
    return Q(queue__icontains=value) | Q(subject__icontains=value)


def _kinds(value: str) -> list[str]:
    wanted = value.replace("_", "-")
    return [kind.name for kind in KINDS if wanted in (_slug(kind.title), kind.name.replace("_", "-"))]


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")
