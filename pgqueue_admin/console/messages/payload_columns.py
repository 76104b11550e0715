"""Fields of bodies as columns of a list: which ones, what stands in their cells, and what else can be chosen."""

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

SECONDS = 1.0  # of those that the page has
MOST = 6  # columns
BODYLINE = "bodyline"  # of waiting messages: the start of each body as it is, no field of it
GUESSED = 2  # where nobody has chosen any
TYPES = 12  # of a page, of which fields are offered
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
    """``packed``: its name and all of its fields, as the form that keeps a choice has them."""

    word: str
    fields: list[OfferedField]
    packed: str


@dataclass(frozen=True)
class PayloadColumns:
    """``asked``: the address says which. ``are_kept``: what is shown is what this person has chosen for some type."""

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
        """What an address goes on with, so that it shows the same."""
        return "".join(f"&{urlencode({'cols': name})}" for name in self.chosen_names) if self.asked else ""

    @property
    def chosen_names(self) -> list[str]:
        """As an address and a form have them: of none one that is empty."""
        return list(self.names) or [""]


def asked(query: QueryDict) -> list[str] | None:
    """The fields that an address names; None where it names none, not even that there are to be none."""
    if "cols" not in query:
        return None
    given = (name.strip() for name in query.getlist("cols"))
    return list(dict.fromkeys(name for name in given if is_name(name) and name != BODYLINE))[:MOST]


def is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()


def columns(
    payloads: Mapping[Hashable, tuple[str, Payload]], asked: Sequence[str] | None, person: Any
) -> PayloadColumns:
    """``payloads``: of each row its type and what could be read of its body."""
    by_type = _by_type(payloads.values())
    kept = payload_choice.of(person, list(by_type)) if by_type and asked is None else {}
    names = list(asked) if asked is not None else _of_types(by_type, kept)
    cells = {key: [_cell(name, payload) for name in names] for key, (_, payload) in payloads.items()}
    offered = [_offered(type, fields, names) for type, fields in list(by_type.items())[:TYPES] if fields]
    return PayloadColumns(names, cells, offered, asked is not None, bool(kept))


def _by_type(payloads: Iterable[tuple[str, Payload]]) -> dict[str, Counter[str]]:
    """Their fields, in the order in which bodies have them, with how many have each; the commonest type first."""
    fields, often = dict[str, Counter[str]](), Counter[str]()
    for type, payload in payloads:
        fields.setdefault(type, Counter()).update([name for name in payload.fields if is_name(name)])
        often[type] += 1
    return {type: fields[type] for type, _ in often.most_common()}


def _of_types(by_type: Mapping[str, Counter[str]], kept: Mapping[str, list[str]]) -> list[str]:
    """What was chosen for these types; of the others the first fields that most of their bodies have."""
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
    """For each type of the page those of its fields that its address shows; or the first ones again."""
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
    """None of what no page of ours has written."""
    match pagination.unpack(packed):
        case [str(type), list(fields)] if len(type) <= LONGEST_TYPE and (type.isprintable() or not type):
            return type, [name for name in fields[:OFFERED] if is_name(name)]
    return None


urlpatterns = [path("columns/", keep, name="columns")]
