"""Decides which queues a person may see and act on; nothing else decides it.

Superusers, and people whose groups have no scopes, see and act everywhere. For others it is computed once per request;
code below the pages that reads queues (``dialects.visible_queues``) narrows its queries by the result.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from pgqueue_admin.dialects import Address, visible_queues
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.visible_queues import VisibleQueues
from pgqueue_admin.models import Queue, QueueScope
from pgqueue_admin.services.permissions import Refusal

ANY = "*"
Matches = Callable[[str, str], bool]


class Scope(NamedTuple):
    pattern: str
    may_act: bool
    group: int


def of(person: Any) -> VisibleQueues | None:
    """Return the visible queues; None: all. Computed once per user object, that is once per request."""
    if isinstance(person, str) or not person.is_authenticated or (person.is_active and person.is_superuser):
        return None
    if not hasattr(person, "_visible_queues"):
        scopes = scopes_of(person)
        person._visible_queues = _matching(scopes) if scopes else None
    found: VisibleQueues | None = person._visible_queues
    return found


def scopes_of(person: Any) -> list[Scope]:
    """Return the scopes of all their groups. Users loaded from a session carry them; for others they are queried."""
    known = getattr(person, "scopes_of_groups", None)
    if known is None:
        known = (
            QueueScope.objects.filter(group__user=person).order_by("pattern").values("pattern", "may_act", "group_id")
        )
    return [Scope(each["pattern"], each["may_act"], each["group_id"]) for each in known]


def brought_along() -> ArraySubquery:
    """Annotation for a query of people, which saves each page a statement."""
    given = QueueScope.objects.filter(group__user=OuterRef("pk")).order_by("pattern")
    return ArraySubquery(given.values(said=JSONObject(pattern="pattern", may_act="may_act", group_id="group_id")))


def refusal_for(address: Address) -> Refusal | None:
    """Why the current person may not act on it; None: scopes allow it. It says if they may not even see the queue."""
    return refusal_by_name(postgresql().canonical(address))


def refusal_by_name(name: str) -> Refusal | None:
    """Likewise, by canonical address."""
    seen = visible_queues.current()
    if seen is None or seen.acts_on_name(name):
        return None
    if not seen.sees_name(name):
        return Refusal(f"is for {name}, and there is no such queue that you may see")
    return Refusal(f"needs a group that may act on {name}: yours may only look")


def matcher(pattern: str) -> Matches:
    """Match ``schema.queue``: the schema before the first dot, the table after it; ``*`` is any text."""
    schema, _, table = pattern.partition(".")
    if pattern == ANY:
        table = ANY
    in_schema, in_table = _expression(schema), _expression(table)
    return lambda schema, table: bool(in_schema.fullmatch(schema) and in_table.fullmatch(table))


def _expression(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split(ANY))), re.DOTALL)


def _matching(scopes: Iterable[Scope]) -> VisibleQueues:
    """Match known queues, and also dropped ones: their dead messages are still in the archive."""
    scopes = list(scopes)
    sees, acts = _any([each.pattern for each in scopes]), _any([each.pattern for each in scopes if each.may_act])
    known = list(Queue._base_manager.values_list("pk", "schema", "table", "gone_since").order_by("pk"))
    found = [(pk, Address(schema, table), gone) for pk, schema, table, gone in known if sees(schema, table)]
    acted_on = frozenset(address for _, address, _ in found if acts(*address))
    return VisibleQueues(
        seen=frozenset(address for _, address, _ in found),
        acted_on=acted_on,
        ids=tuple(pk for pk, _, _ in found),
        names=_names(address for _, address, _ in found),
        acted_on_names=_names(acted_on),
        there=sum(gone is None for _, _, gone in found),
        team=tuple(sorted({each.group for each in scopes})),
    )


def _any(patterns: Iterable[str]) -> Matches:
    matchers = [matcher(each) for each in patterns]
    return lambda schema, table: any(matches(schema, table) for matches in matchers)


def _names(addresses: Iterable[Address]) -> tuple[str, ...]:
    return tuple(sorted(map(postgresql().canonical, addresses)))
