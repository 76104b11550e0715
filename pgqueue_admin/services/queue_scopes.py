"""Queue scopes, which limit the queues that a group's people see: given, changed and removed, with audit entries."""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction
from django.db.models import Q

from pgqueue_admin.models import AuditEntry, QueueScope
from pgqueue_admin.models.queue_scope import LONGEST
from pgqueue_admin.services import queue_access
from pgqueue_admin.services.permissions import Refusal, name_of

RIGHT = "auth.change_group"
MOST = 200
_NOTHING = "Nothing was changed"


class ScopeRefused(Exception):
    """What was not done and why, as a sentence."""


class ScopeNotAllowed(ScopeRefused):
    """The right is missing."""


def refusal(person: Any, group: Group | None = None) -> Refusal | None:
    """Why this person may not change scopes. It takes the right to change groups, sight of every queue, and every right
    that the group gives.
    """
    if isinstance(person, str):
        return None
    if queue_access.of(person) is not None:
        return Refusal("is for people who see every queue, and your groups show you some")
    if not person.has_perm(RIGHT):
        return Refusal("needs the right “Can change group”, which an administrator gives in Django admin")
    if group is not None and not person.is_superuser and _gives_more(group, person):
        return Refusal(f"is for people who have every right that {group.name} gives, and you have not")
    return None


def give(
    group: Group, pattern: str, person: Any, origin: str, reason: str = "", *, may_act: bool = False
) -> QueueScope:
    """Let the group's people see queues that match, and no longer all. Raises ScopeRefused."""
    _allowed(person, group)
    said = "".join(pattern.split())
    if fault := _fault(said):
        raise ScopeRefused(f"{_NOTHING}. {fault}")
    if QueueScope.objects.count() >= MOST:
        raise ScopeRefused(f"{_NOTHING}. There are {MOST} scopes, which is the most.")
    try:
        with transaction.atomic():
            made = QueueScope.objects.create(group=group, pattern=said, may_act=may_act)
            _note("create", made, person, origin, reason, after=_values(made))
    except IntegrityError as error:
        raise ScopeRefused(f"{_NOTHING}. {group.name} has {said} already.") from error
    return made


def let_act(number: int, person: Any, origin: str, reason: str = "", *, may_act: bool) -> QueueScope:
    """Raises ScopeRefused."""
    with transaction.atomic():
        known = _held(number, person)
        before = _values(known)
        if known.may_act != may_act:
            known.may_act = may_act
            known.save(update_fields=["may_act"])
            _note("set", known, person, origin, reason, before, _values(known))
    return known


def take(number: int, person: Any, origin: str, reason: str = "") -> QueueScope:
    """Remove a scope; without its last one a group limits nothing. Raises ScopeRefused."""
    with transaction.atomic():
        known = _held(number, person)
        _note("remove", known, person, origin, reason, before=_values(known))
        known.delete()
    return known


def _fault(pattern: str) -> str:
    schema, dot, table = pattern.partition(".")
    if len(pattern) > LONGEST:
        return f"A pattern has at most {LONGEST} letters."
    if pattern != queue_access.ANY and not (schema and dot and table):
        return "A pattern is schema.queue, such as public.Billing or public.Billing.*, and * alone is every queue."
    return "" if pattern.isprintable() else "A pattern has printable letters only."


def _held(number: int, person: Any) -> QueueScope:
    known = QueueScope.objects.select_for_update(of=("self",)).select_related("group").filter(pk=number).first()
    if known is None:
        raise ScopeRefused(f"{_NOTHING}. This scope was removed meanwhile.")
    _allowed(person, known.group)
    return known


def _allowed(person: Any, group: Group) -> None:
    if refused := refusal(person, group):
        raise ScopeNotAllowed(f"{_NOTHING}: it {refused}.")


def _gives_more(group: Group, person: Any) -> bool:
    own = Permission.objects.filter(Q(user=person) | Q(group__user=person))
    return group.permissions.exclude(pk__in=own.values("pk")).exists()


def _values(known: QueueScope) -> dict[str, Any]:
    return {"pattern": known.pattern, "may_act": known.may_act}


def _note(
    verb: str, scope: QueueScope, person: Any, origin: str, reason: str, before: Any = None, after: Any = None
) -> None:
    about = {"who": name_of(person), "origin": origin, "reason": reason}
    AuditEntry.objects.create(verb=verb, noun="scope", subject=scope.group.name, before=before, after=after, **about)
