"""Facets of an archive search: the names that most of its messages have, each a search itself."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.conf import settings

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.store import FacetCount
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.messages.detail.summary import STATE_WORDS, address_of
from pgqueue_admin.console.query_errors import QueryError
from pgqueue_admin.dialects import Connection, deadline
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.transport.wire.type_names import short_type

SECONDS = 2.0  # of the page's time


class _Field(NamedTuple):
    """``column`` is the filter's exact match of a name; ``wider`` columns match a part of it and are cleared."""

    word: str
    column: str
    wider: tuple[str, ...] = ()


_FIELDS = {
    "queue": _Field("Queue", "queue"),
    "type": _Field("Type", "type_is", ("type", "type_from")),
    "error": _Field("Error", "exception_is", ("exception", "exception_from")),
    "endpoint": _Field("Endpoint", "endpoint"),
    "state": _Field("State", "state"),
}
_NOTHING = ArchiveFilter(state="").asked()


class FacetValue(NamedTuple):
    """``q``: the search with this term, or without it if it ``is_chosen``; "" if no search can find it."""

    word: str
    name: str
    number: int
    q: str
    is_chosen: bool


class Facet(NamedTuple):
    """``others``: the number of further names."""

    word: str
    values: list[FacetValue]
    others: int


@dataclass(frozen=True)
class Facets:
    """Counts over ``messages`` messages. If these ``are_newest``, older ones exist, and each count is a lower bound."""

    facets: list[Facet]
    messages: int
    are_newest: bool

    @property
    def how(self) -> str:
        return "capped" if self.are_newest else "counted"


def read(listed: ArchiveFilter, searched: ArchiveFilter) -> tuple[Facets | None, QueryError | None]:
    """Facets of the messages that a page lists, or why they failed.

    ``searched``: the search their terms are added to.
    """
    with deadline.within(SECONDS):
        return query_errors.read(lambda connection: _read(connection, listed, searched))


def _read(connection: Connection, listed: ArchiveFilter, searched: ArchiveFilter) -> Facets:
    cap = settings.PGQUEUE["CAP"]
    counts = store.facets(connection, listed, cap)
    facets = [_facet(field, [each for each in counts if each.field == field], searched) for field in _FIELDS]
    messages = next((each.messages for each in counts if each.field == "all"), 0)
    return Facets([each for each in facets if each.values], min(messages, cap), messages > cap)


def _facet(field: str, counts: list[FacetCount], searched: ArchiveFilter) -> Facet:
    words = _words(field, [each.name for each in counts])
    values = [_value(each, words[each.name], searched) for each in counts]
    return Facet(_FIELDS[field].word, values, counts[0].names - len(counts) if counts else 0)


def _value(counted: FacetCount, word: str, searched: ArchiveFilter) -> FacetValue:
    field, name = _FIELDS[counted.field], counted.name
    is_chosen = getattr(searched, field.column) == name
    changed: dict[str, Any] = {each: "" for each in field.wider}
    changed[field.column] = _NOTHING[field.column] if is_chosen else name
    q = search_query.written(replace(searched, **changed)) if _can_be_asked(field, name) else ""
    return FacetValue(word, name, counted.messages, q, is_chosen)


def _can_be_asked(field: _Field, name: str) -> bool:
    """False for a queue whose name is no address, and for messages without an endpoint."""
    return {"queue": address_of(name) is not None, "endpoint": bool(name)}.get(field.column, True)


def _words(field: str, names: list[str]) -> dict[str, str]:
    """Types and errors lose their namespace, unless two of them would then be equal."""
    if field == "state":
        return {name: STATE_WORDS.get(name, name) for name in names}
    if field == "queue":
        return {name: _table(name) for name in names}
    if field == "endpoint":
        return {name: name or "no endpoint" for name in names}
    short = {name: short_type(name) if name else f"no {field}" for name in names}
    often = Counter(short.values())
    return {name: word if often[word] == 1 else name for name, word in short.items()}


def _table(name: str) -> str:
    address = address_of(name)
    if address is None:
        return name
    return address.table if address.schema == queue_database().default_schema else f"{address.schema}.{address.table}"
