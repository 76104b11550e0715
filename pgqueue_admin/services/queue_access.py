"""Which queues a person may see, and act on: the one place that decides it.

A person none of whose groups has scopes, and a superuser, see and act everywhere. Of anybody else it is asked once for
each request; what reads queues below the pages (``dialects.visible_queues``) narrows itself by the answer.
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
    """None: all queues. Read once for each user object, which is once for each request."""
    if isinstance(person, str) or not person.is_authenticated or (person.is_active and person.is_superuser):
        return None
    if not hasattr(person, "_visible_queues"):
        scopes = scopes_of(person)
        person._visible_queues = _matching(scopes) if scopes else None
    found: VisibleQueues | None = person._visible_queues
    return found


def scopes_of(person: Any) -> list[Scope]:
    """By all of their groups. Who was signed in by a session brings them along; of others they are asked."""
    known = getattr(person, "scopes_of_groups", None)
    if known is None:
        known = (
            QueueScope.objects.filter(group__user=person).order_by("pattern").values("pattern", "may_act", "group_id")
        )
    return [Scope(each["pattern"], each["may_act"], each["group_id"]) for each in known]


def brought_along() -> ArraySubquery:
    """For a query of people: so that a page asks no statement more."""
    given = QueueScope.objects.filter(group__user=OuterRef("pk")).order_by("pattern")
    return ArraySubquery(given.values(said=JSONObject(pattern="pattern", may_act="may_act", group_id="group_id")))


def refusal_for(address: Address) -> Refusal | None:
    """Why whoever asks does not act on it; None: as far as scopes go, they may. Of one that is not seen it says so."""
    return refusal_by_name(postgresql().canonical(address))


def refusal_by_name(name: str) -> Refusal | None:
    """Likewise, by its canonical address."""
    seen = visible_queues.current()
    if seen is None or seen.acts_on_name(name):
        return None
    if not seen.sees_name(name):
        return Refusal(f"is for {name}, and there is no such queue that you may see")
    return Refusal(f"needs a group that may act on {name}: yours may only look")


def matcher(pattern: str) -> Matches:
    """``schema.queue``: before the first dot of the schema, behind it of the table; ``*`` is any text."""
    schema, _, table = pattern.partition(".")
    if pattern == ANY:
        table = ANY
    in_schema, in_table = _expression(schema), _expression(table)
    return lambda schema, table: bool(in_schema.fullmatch(schema) and in_table.fullmatch(table))


def _expression(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split(ANY))), re.DOTALL)


def _matching(scopes: Iterable[Scope]) -> VisibleQueues:
    """Of the queues that are known, gone ones with them: what died there is in the archive still."""
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
