"""Writes the archive's search for links: exactly what a figure counts (parsed by console/archive/search)."""

import re
from collections.abc import Iterator

from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_condition import LAST
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Node, Span, Term
from pgqueue_admin.formatting import payload_fields

_AS_THEY_ARE = ("state", "result", "kind", "queue", "since", "until")
_FAILURE = "fp"
_WHOLE = {
    "endpoint": "endpoint",
    "message_id": "id",
    "fingerprint": _FAILURE,
    "type_is": "type",
    "exception_is": "error",
}
_BEGINNINGS = {"type_from": "type", "exception_from": "error"}
_UNQUOTED = {"state", "result", "kind", "op"}
_JOINING = {"OR", "AND", "NOT"}
_PLAIN_WORD, _PLAIN_NAME = re.compile(r"\w[\w.]*"), re.compile(r"[\w.-]+")
_LAST_PARTS = {"type": "type", "exception": "error"}  # or the whole name


def exactly(field: str, name: str) -> str:
    """Exactly this name; an empty one means messages without a name."""
    return f"{field}:={quoted(name)}"


def beginning(field: str, name: str) -> str:
    """Every name with this prefix, for a truncated name."""
    return f"{field}:{quoted(name)}*"


def died_in(queue: str) -> str:
    """By canonical address, which has its own quotes, or by name."""
    return "queue:" + (queue if '"' in queue else quoted(queue))


def anywhere(text: str) -> str:
    """Messages with this in any of their texts."""
    is_plain = _PLAIN_WORD.fullmatch(text) and text not in _JOINING
    return text if is_plain else _in_quotes(text)


def of_failure(fingerprint: str, state: str = "dead") -> str:
    """Messages of one failure; of every state if ``state`` is empty."""
    return f"{f'state:{state} ' if state else ''}{_FAILURE}:{fingerprint}"


def worded(text: str) -> str:
    """Messages with this in their error's message."""
    return f"message:{quoted(text)}"


def in_body(text: str) -> str:
    """Messages with this in their body."""
    return f"body:{quoted(text)}"


def written(asked: ArchiveFilter) -> str:
    """The whole filter as a search."""
    return " ".join(_terms(asked))


def _terms(asked: ArchiveFilter) -> Iterator[str]:
    nothing = ArchiveFilter(state="").asked()
    given = {name: value for name, value in asked.asked().items() if value != nothing[name]}
    yield from (f"{name}:{given[name]}" for name in _AS_THEY_ARE if name in given)
    yield from (exactly(field, given[name]) for name, field in _WHOLE.items() if name in given)
    yield from (beginning(field, given[name]) for name, field in _BEGINNINGS.items() if name in given)
    yield from (f"{field}:{quoted(given[name])}" for name, field in _LAST_PARTS.items() if name in given)
    yield from (worded(word) for word in asked.words)
    yield from (f"headers:{quoted(each)}" for each in asked.headers)
    yield from (in_body(each) for each in asked.bodies)
    if "operation" in given:
        yield f"op:{asked.operation}"
    if "last_operation" in given:
        yield f"op:{asked.last_operation}{LAST}"
    yield from map(_node, asked.also)


def _node(node: Node) -> str:
    """OR binds its neighbours only, so it needs no brackets beside other terms."""
    match node:
        case AllOf(nodes=nodes):
            return " ".join(f"({_node(each)})" if isinstance(each, AllOf) else _node(each) for each in nodes)
        case AnyOf(nodes=nodes):
            return " OR ".join(f"({_node(each)})" if isinstance(each, AllOf | AnyOf) else _node(each) for each in nodes)
        case Excluded(node=inner):
            return f"-{_node(inner)}" if isinstance(inner, Term | Span) else f"-({_node(inner)})"
        case Span(text=text):
            return text
        case Term():
            return _term(node)


def _term(term: Term) -> str:
    if not term.field:
        return anywhere(term.value)
    if term.field == "queue" and term.how == "is":
        return died_in(term.value)
    if term.field in _UNQUOTED:
        return f"{term.field}:{term.value}"
    field = ".".join([term.field, *(_key(each, term.field) for each in term.path)])
    if term.how == "is":
        return exactly(field, term.value)
    return beginning(field, term.value) if term.how == "starts" else f"{field}:{quoted(term.value)}"


def _key(key: str, field: str) -> str:
    """A header's name may contain dots; in a path they separate keys."""
    if field == "header":
        return key if _PLAIN_NAME.fullmatch(key) else _in_quotes(key)
    return payload_fields.key(key)


def quoted(name: str) -> str:
    """The value, quoted only if the search would interpret it; quotation marks inside are doubled."""
    is_plain = name and name[0] != "=" and name[-1] != "*" and not any(each in '"()' or each.isspace() for each in name)
    return name if is_plain else _in_quotes(name)


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
