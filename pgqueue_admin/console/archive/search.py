"""Parses the archive's search box into a filter or an error. A term in error never widens the search."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pgqueue_admin.archive import search_query
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_condition import LAST
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Node, Span, Term
from pgqueue_admin.console.archive import fields
from pgqueue_admin.console.archive.fields import KINDS, RESULTS, STATES
from pgqueue_admin.console.archive.syntax import parsed
from pgqueue_admin.console.archive.tokens import MOST_WORDS, SearchSyntaxError
from pgqueue_admin.services.content_access import ContentAccess

__all__ = [
    "DEAD",
    "KINDS",
    "MOST_WORDS",
    "RESULTS",
    "STATES",
    "ArchiveSearch",
    "SearchSyntaxError",
    "names_a_field",
    "place_of",
    "read",
]
DEAD = "state:dead"
AROUND = 60  # characters shown on each side of an error
_SHORT = re.compile(rf"(?s)(?<=^.{{{AROUND}}}).+")
_SINGLE = {  # columns of the filter that only one term may set
    ("state", "is"): "state",
    ("result", "is"): "result",
    ("kind", "is"): "kind",
    ("queue", "is"): "queue",
    ("endpoint", "is"): "endpoint",
    ("type", "has"): "type",
    ("type", "is"): "type_is",
    ("type", "starts"): "type_from",
    ("error", "has"): "exception",
    ("error", "is"): "exception_is",
    ("error", "starts"): "exception_from",
    ("id", "is"): "message_id",
    ("fp", "is"): "fingerprint",
}
_REPEATED = {"message": "words", "headers": "headers", "body": "bodies"}


@dataclass(frozen=True)
class ArchiveSearch:
    """``text`` as typed. With an ``error``, nothing is searched. Words without a field are searched in all texts."""

    text: str
    filter: ArchiveFilter = field(default_factory=ArchiveFilter)
    error: SearchSyntaxError | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """The text before the error, the error itself, and the text after it."""
        return place_of(self.text, self.error)

    @property
    def takes_whole_names(self) -> bool:
        """Whether a term compares whole names, so that a part of a name finds nothing."""
        asked = self.filter
        names = (asked.type_is, asked.exception_is)
        return any((asked.queue, asked.type, asked.exception, asked.endpoint, asked.message_id, *names))

    @property
    def without_state(self) -> str:
        """The same search over messages of every state."""
        return search_query.written(replace(self.filter, state=""))

    @property
    def reads_rows(self) -> bool:
        return self.filter.reads_rows

    @property
    def read_in(self) -> list[tuple[str, list[str]]]:
        """What is searched row by row, by the part of the message that is searched."""
        found: dict[str, list[str]] = {}
        for term in _terms(self.filter.texts):
            found.setdefault(_part(term), []).append(term.value)
        return list(found.items())

    @property
    def reads_bodies(self) -> bool:
        return any(term.field in ("", "body") and not term.path for term in _terms(self.filter.texts))

    @property
    def not_read(self) -> str:
        """Parts that a person may think were searched. Empty if a word was searched everywhere."""
        read = {term.field for term in _terms(self.filter.texts) if not term.path}
        parts = [name for name, field in (("bodies", "body"), ("headers", "headers")) if field not in read]
        return "" if "" in read else f"{', '.join(parts)} and ids" if parts else "ids"

    @property
    def in_bodies(self) -> str:
        """The same search with its words searched in bodies."""
        return search_query.written(replace(self.filter, words=(), bodies=(*self.filter.bodies, *self.filter.words)))


def place_of(text: str, error: SearchSyntaxError | None) -> tuple[str, str, str]:
    start, end = (error.start, error.end) if error else (0, 0)
    before, behind = text[:start], text[end:]
    return _SHORT.sub("…", before[::-1])[::-1], text[start:end][:AROUND], _SHORT.sub("…", behind)


def read(text: str | None, access: ContentAccess) -> ArchiveSearch:
    """None means the dead messages, an empty text all messages.

    A person who may not read contents may not search them either: counts would reveal them letter by letter.
    """
    text = DEAD if text is None else text.strip().replace("\0", "")
    try:
        return ArchiveSearch(text, _filter(text, access) if text else ArchiveFilter(state=""))
    except SearchSyntaxError as error:
        return ArchiveSearch(text, error=error)


def names_a_field(text: str) -> bool:
    """Whether the text is a search rather than an id, which may contain a colon, too."""
    return any(map(fields.is_field, text.split()))


def is_one_word(text: str) -> bool:
    """Whether the text can be an id: one word, and no phrase, group or exclusion."""
    return len(text.split()) == 1 and not text.startswith(('"', "(", "-"))


def _filter(text: str, access: ContentAccess) -> ArchiveFilter:
    asked: dict[str, Any] = {"state": ""}
    given = set[str]()
    for node, typed, at in parsed(text, fields.term):
        if refusal := next(filter(None, (access.search_refusal(term.field, term.path) for term in _terms(node))), ""):
            raise SearchSyntaxError(typed, refusal, at)
        name, column, value = _column(node)
        if column in ("words", "headers", "bodies", "also"):
            asked[column] = (*asked.get(column, ()), value)
        elif name in given:
            raise SearchSyntaxError(
                typed,
                f"{name}: is there already, and every term must hold. Leave one of them, or write OR between them.",
                at,
            )
        else:
            asked[column] = value
            given.add(name)
    return ArchiveFilter(**asked)


def _column(node: Node) -> tuple[str, str, Any]:
    """The node's field, the filter's column for it, and the column's value."""
    match node:
        case Term(field="op", value=value) if value.isdecimal():
            return "op", "operation", int(value)
        case Term(field="op", value=value) if value.endswith(LAST):
            return "op", "last_operation", int(value.removesuffix(LAST))
        case Term(field=name, how="has", path=(), value=value) if name in _REPEATED:
            return name, _REPEATED[name], value
        case Term(field=name, how=how, value=value) if (name, how) in _SINGLE:
            return name, _SINGLE[name, how], value
        case Span(text=text, low=str() as low, high=None) if text.startswith("since:"):
            return "since", "since", low
        case Span(text=text, low=None, high=str() as high) if text.startswith("until:"):
            return "until", "until", high
    return "", "also", node


def _terms(node: Node) -> list[Term]:
    match node:
        case Term():
            return [node] if node.field in _PARTS else []
        case Excluded(node=inner):
            return _terms(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            return [term for each in nodes for term in _terms(each)]
    return []


_PARTS = {
    "": "all texts",
    "message": "error messages",
    "headers": "headers",
    "header": "headers",
    "conversation": "headers",
    "body": "bodies",
}


def _part(term: Term) -> str:
    return f"{term.field}.{'.'.join(term.path)}" if term.path else _PARTS[term.field]
