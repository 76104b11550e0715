"""Completes a search while it is typed: fields, and values of the last field. Each suggestion is a whole search."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_safe

from pgqueue_admin.archive import search_query, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import Term, reads_text
from pgqueue_admin.console import query_errors
from pgqueue_admin.console.archive import fields
from pgqueue_admin.console.archive.tokens import MOST_LETTERS
from pgqueue_admin.console.leases import query as leases
from pgqueue_admin.console.messages import waiting_query
from pgqueue_admin.dialects import deadline
from pgqueue_admin.formatting.numbers import format_figure
from pgqueue_admin.models import Endpoint, Queue, failure_group
from pgqueue_admin.services import content_access
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.transport.wire.type_names import short_type

MOST = 12
NEWEST = 2_000  # archived messages whose names are counted
NAMES = 100  # of a field
SECONDS = 0.5
_LAST = re.compile(r'(?:^|\s)[-(]*(?P<term>(?:"(?:[^"]|"")*"|[^\s"])*)\Z')
_TIMES = ("1h", "24h", "7d", "today", "yesterday")
_FIXED = {
    "state": fields.STATES,
    "result": fields.RESULTS,
    "kind": fields.KINDS,
    "age": (">1h", ">1d", "<10m"),
    "died": _TIMES,
    "sent": _TIMES,
    "size": (">10kb", ">1mb"),
    "attempts": (">=3",),
}


class _Box(NamedTuple):
    """A search box: its fields, and its words for states."""

    names: Sequence[str] = fields.NAMES
    states: Sequence[str] = ()
    has_queues: bool = False  # a queue's name alone leads to its page


_BOXES = {
    "": _Box(),
    "waiting": _Box(waiting_query.NAMES, ("expired",)),
    "leases": _Box(leases.NAMES, tuple(leases.STATES)),
    "everywhere": _Box(has_queues=True),
}
_COUNTED = ("type", "error", "endpoint")  # counted in the archive, as facets are


class Suggestion(NamedTuple):
    text: str
    about: str = ""


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    box = _BOXES.get(request.GET.get("of", ""), _BOXES[""])
    found = of(request.GET.get("q", "")[:MOST_LETTERS], box, content_access.of(request.user))
    return render(request, "pgqueue_admin/archive/suggestions.html", {"suggestions": list(islice(found, MOST))})


def of(text: str, box: _Box, access: ContentAccess) -> Iterator[Suggestion]:
    """Suggestions that begin with the typed text: a browser shows no others. None within an open quotation mark."""
    last = _LAST.search(text)
    if not last or not last["term"]:
        return
    typed, before = last["term"], text[: last.start("term")]
    name, colon, value = typed.partition(":")
    for each in _values(name.lower(), value, box) if colon else _words(typed, before, box, access):
        begins = f"{name.lower()}:{each.text}" if colon else each.text
        if begins.isprintable() and begins.lower().startswith(typed.lower()) and begins != typed:
            yield Suggestion(before + begins, each.about)


def _words(typed: str, before: str, box: _Box, access: ContentAccess) -> Iterator[Suggestion]:
    yield from _fields(typed, box.names, access)
    if box.has_queues and not before:
        yield from (Suggestion(name, "queue") for name in _queues(typed))


def _fields(typed: str, known: Iterable[str], access: ContentAccess) -> Iterator[Suggestion]:
    """Fields that this person may search by."""
    for name in known:
        head, dot, _ = name.partition(".")
        if not (reads_text(Term(head, "")) and access.search_refusal(head, ("",) if dot else ())):
            yield Suggestion(f"{head}." if dot else f"{name}:")


def _queues(begins: str) -> Sequence[str]:
    named = Queue.objects.filter(gone_since=None, table__istartswith=begins.replace("\0", ""))
    return list(named.values_list("table", flat=True)[:MOST])


def _values(name: str, value: str, box: _Box) -> Iterable[Suggestion]:
    if name not in box.names:
        return []
    if name == "is":
        return map(Suggestion, box.states)
    if name in _FIXED:
        return map(Suggestion, _FIXED[name])
    if name == "queue":
        return [Suggestion(_quoted(each)) for each in _queues(value)]
    if name == "owner":
        names = failure_group.owners(value.replace("\0", ""))
        return [Suggestion(_quoted(each)) for each in names[:MOST]]
    return _names(name) if name in _COUNTED else []


def _names(field: str) -> Iterator[Suggestion]:
    """The most frequent among the newest messages, as last part and whole name; for ``endpoint``, ours follow."""
    with deadline.within(SECONDS):
        counts, _ = query_errors.read(
            lambda connection: store.facets(connection, ArchiveFilter(state=""), NEWEST, NAMES)
        )
    seen = set[str]()
    for each in counts or []:
        if each.field == field and each.name:
            about = f"{format_figure(each.messages)} of the newest {NEWEST:,}"
            short = short_type(each.name)
            names = [each.name] if field == "endpoint" else [short.rpartition("+")[2], short, each.name]
            yield from (Suggestion(_quoted(name), about) for name in dict.fromkeys(names) if name not in seen)
            seen.update(names)
    if field == "endpoint":
        named = Endpoint.objects.values_list("name", flat=True)[:NAMES]
        yield from (Suggestion(_quoted(name)) for name in named if name not in seen)


def _quoted(name: Any) -> str:
    return search_query.quoted(str(name))


urlpatterns = [path("archive/suggestions/", page, name="archive_suggestions")]
