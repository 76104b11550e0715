"""Body fields as list columns: which are shown, their cells, and which others are offered."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import path
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from pgqueue_admin.console import pagination, responses
from pgqueue_admin.console.query_errors import QueryError
from pgqueue_admin.formatting.payload_fields import LONGEST_NAME
from pgqueue_admin.models import payload_choice
from pgqueue_admin.models.payload_choice import LONGEST_TYPE
from pgqueue_admin.services.content_access import Payload
from pgqueue_admin.transport.wire.type_names import short_type

SECONDS = 1.0  # of the page's time limit
MOST = 6  # columns
BODYLINE = "bodyline"  # of waiting messages: the raw start of each body, not a field
GUESSED = 2  # for types without a saved choice
TYPES = 12  # of a page, whose fields are offered
OFFERED = 30  # fields of a type


class PayloadCell(NamedTuple):
    """``missing``: why the value is not known; both empty: the body has no such field."""

    field: str
    value: str
    missing: str = ""


class OfferedField(NamedTuple):
    name: str
    is_shown: bool


class OfferedType(NamedTuple):
    """``packed``: its name and all of its fields, for the form that saves a choice."""

    word: str
    fields: list[OfferedField]
    packed: str


@dataclass(frozen=True)
class PayloadColumns:
    """``asked``: the address names the columns. ``are_kept``: they are this person's saved choice for some type."""

    names: Sequence[str] = ()
    cells: Mapping[Hashable, list[PayloadCell]] | None = None
    types: Sequence[OfferedType] = ()
    asked: bool = False
    are_kept: bool = False
    trouble: QueryError | None = None

    def of(self, key: Hashable) -> list[PayloadCell]:
        known = (self.cells or {}).get(key)
        return known if known is not None else [PayloadCell(name, "", "not read") for name in self.names]

    @property
    def as_query(self) -> str:
        """The query that links append to show the same columns."""
        return "".join(f"&{urlencode({'cols': name})}" for name in self.chosen_names) if self.asked else ""

    @property
    def chosen_names(self) -> list[str]:
        """For addresses and forms: one empty name means no columns."""
        return list(self.names) or [""]


def asked(query: QueryDict) -> list[str] | None:
    """The fields that an address names; None without ``cols``. An empty ``cols`` means no columns."""
    if "cols" not in query:
        return None
    given = (name.strip() for name in query.getlist("cols"))
    return list(dict.fromkeys(name for name in given if is_name(name) and name != BODYLINE))[:MOST]


def is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()


def columns(
    payloads: Mapping[Hashable, tuple[str, Payload]], asked: Sequence[str] | None, person: Any
) -> PayloadColumns:
    """``payloads``: row key → its type and what could be read of its body."""
    by_type = _by_type(payloads.values())
    kept = payload_choice.of(person, list(by_type)) if by_type and asked is None else {}
    names = list(asked) if asked is not None else _of_types(by_type, kept)
    cells = {key: [_cell(name, payload) for name in names] for key, (_, payload) in payloads.items()}
    offered = [_offered(type, fields, names) for type, fields in list(by_type.items())[:TYPES] if fields]
    return PayloadColumns(names, cells, offered, asked is not None, bool(kept))


def _by_type(payloads: Iterable[tuple[str, Payload]]) -> dict[str, Counter[str]]:
    """Fields of each type in body order, with how many bodies have each; the most common type first."""
    fields, often = dict[str, Counter[str]](), Counter[str]()
    for type, payload in payloads:
        fields.setdefault(type, Counter()).update([name for name in payload.fields if is_name(name)])
        often[type] += 1
    return {type: fields[type] for type, _ in often.most_common()}


def _of_types(by_type: Mapping[str, Counter[str]], kept: Mapping[str, list[str]]) -> list[str]:
    """Saved columns of these types; for the others, the most common of their first fields."""
    there = {name for fields in by_type.values() for name in fields}
    chosen = [name for type in by_type for name in kept.get(type, ()) if name in there]
    guessed = Counter[str]()
    for type, fields in by_type.items():
        if type not in kept:
            guessed.update({name: fields[name] for name in list(fields)[:GUESSED]})
    names = [*chosen, *(name for name, _ in guessed.most_common(GUESSED))]
    return list(dict.fromkeys(names))[:MOST]


def _cell(name: str, payload: Payload) -> PayloadCell:
    value = payload.fields.get(name)
    return PayloadCell(name, "", payload.missing) if value is None else PayloadCell(name, value)


def _offered(type: str, fields: Counter[str], names: Sequence[str]) -> OfferedType:
    some = list(dict.fromkeys([*(name for name in names if name in fields), *fields]))[:OFFERED]
    shown = [OfferedField(name, name in names) for name in some]
    return OfferedType(short_type(type) if type else "", shown, pagination.pack(type, some))


@require_POST
def keep(request: HttpRequest) -> HttpResponse:
    """Save the shown fields for each type on the page, or forget saved ones."""
    known = dict(filter(None, map(_of_form, request.POST.getlist("of")[:TYPES])))
    shown = asked(request.POST) or []
    if request.POST.get("forget"):
        payload_choice.forget(request.user, list(known))
        responses.done(request, "Columns are the first fields of each body again.")
    elif known:
        payload_choice.keep(
            request.user, {type: [name for name in shown if name in fields] for type, fields in known.items()}
        )
        types = ", ".join(short_type(type) or "messages of unknown type" for type in known)
        responses.done(request, f"Kept for you: these columns of {types}.")
    return responses.back(request, "archive")


def _of_form(packed: str) -> tuple[str, list[str]] | None:
    """None unless one of our pages wrote it."""
    match pagination.unpack(packed):
        case [str(type), list(fields)] if len(type) <= LONGEST_TYPE and (type.isprintable() or not type):
            return type, [name for name in fields[:OFFERED] if is_name(name)]
    return None


urlpatterns = [path("columns/", keep, name="columns")]
