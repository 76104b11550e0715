"""Adds, changes and removes masking rules, each with an audit entry."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction

from pgqueue_admin.models import AuditEntry, MaskingRule
from pgqueue_admin.services.masking import headers, rule
from pgqueue_admin.services.masking.rule import RuleFault
from pgqueue_admin.services.permissions import name_of, refusal_for

MOST = 50
_FIGURES = {name.casefold() for name in headers.FIGURES}


class RuleRefused(Exception):
    """The rule was not stored; the message says why, and nothing was changed."""


class RuleNotAllowed(RuleRefused):
    """The right is missing."""


class TypedRule(NamedTuple):
    """A rule as typed. ``types``: one pattern a line."""

    name: str
    kind: str
    pattern: str
    types: Sequence[str] = ()


def add(typed: TypedRule, person: Any, origin: str, reason: str = "") -> MaskingRule:
    """Raises RuleRefused."""
    values = _checked(typed, person)
    if MaskingRule.objects.count() >= MOST:
        raise RuleRefused(
            f"Nothing was changed. There are {MOST} rules, which is the most: each costs time on each page."
        )
    with _unique(typed.name), transaction.atomic():
        made = MaskingRule.objects.create(**values)
        _note("create", typed.name, person, origin, reason, after=values)
    return made


def change(number: int, version: int | None, typed: TypedRule, person: Any, origin: str, reason: str = "") -> None:
    """``version``: the version that the person read. Raises RuleRefused."""
    values = _checked(typed, person)
    with _unique(typed.name), transaction.atomic():
        known = _held(number, version)
        before = _values(known)
        if before == values:
            return
        MaskingRule.objects.filter(pk=number).update(**values, version=known.version + 1)
        _note("set", known.name, person, origin, reason, before, values)


def remove(number: int, version: int | None, person: Any, origin: str, reason: str = "") -> None:
    """Raises RuleRefused."""
    _allowed(person)
    with transaction.atomic():
        known = _held(number, version)
        _note("remove", known.name, person, origin, reason, before=_values(known))
        known.delete()


def _checked(typed: TypedRule, person: Any) -> dict[str, Any]:
    _allowed(person)
    types = tuple(dict.fromkeys(line.strip() for line in typed.types if line.strip()))
    try:
        ready = rule.ready(typed.name.strip(), typed.kind, typed.pattern.strip(), types)
    except RuleFault as fault:
        raise RuleRefused(f"Nothing was changed. {fault}") from fault
    if ready.header and ready.pattern.casefold() in _FIGURES:
        raise RuleRefused(
            f"Nothing was changed. Pattern: {ready.pattern} is shown to everybody, as messages are found by it."
        )
    return {"name": ready.name, "kind": ready.kind, "pattern": ready.pattern, "types": list(types)}


def _allowed(person: Any) -> None:
    if refusal := refusal_for(person, "reveal"):
        raise RuleNotAllowed(f"Nothing was changed: it {refusal}.")


def _held(number: int, version: int | None) -> MaskingRule:
    known = MaskingRule.objects.select_for_update().filter(pk=number).first()
    if known is None:
        raise RuleRefused("Nothing was changed. This rule was removed meanwhile.")
    if known.version != version:
        raise RuleRefused("Nothing was changed. Somebody else has changed this rule meanwhile: look at it again.")
    return known


def _values(known: MaskingRule) -> dict[str, Any]:
    return {name: getattr(known, name) for name in ("name", "kind", "pattern", "types")}


@contextmanager
def _unique(name: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise RuleRefused(f"Nothing was changed. There is a rule {name} already.") from error


def _note(verb: str, name: str, person: Any, origin: str, reason: str, before: Any = None, after: Any = None) -> None:
    about = {"who": name_of(person), "origin": origin, "reason": reason}
    AuditEntry.objects.create(verb=verb, noun="masking", subject=name, before=before, after=after, **about)
