"""Compiles a search tree into one SQL condition: parts of archive_search.sql, values as parameters."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pgqueue_admin.archive import indexed_texts
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Bound, Excluded, Lane, Node, Span, Term
from pgqueue_admin.dialects.postgresql import postgresql
from pgqueue_admin.dialects.postgresql.condition import ConditionBuilder
from pgqueue_admin.dialects.statements import Statement
from pgqueue_admin.transport.wire import headers as h

LAST = "/last"  # after an operation's number: messages it was the last to act on
_RAW = r'"\s*:\s*"((?:[^"\\]|\\.)*)"'  # after a header's name: its value, a JSON string
_SPECIAL = re.compile(r"[][\\.*+?^${}()|-]")
_PARTS = {
    ("endpoint", "is"): "endpoint",
    ("endpoint", "starts"): "endpoint_starts",
    ("id", "is"): "message_id",
    ("id", "starts"): "message_id_starts",
    ("host", "is"): "host",
    ("host", "starts"): "host_starts",
    ("queue", "is"): "queue",
    ("queue", "starts"): "queue_starts",
    ("fp", "is"): "fingerprint",
    ("is", "is"): "lease_state",
    ("holder", "is"): "holder_is",
    ("holder", "starts"): "holder_starts",
    ("message", "is"): "message_is",
    ("message", "starts"): "message_starts",
    **{(name, how): f"{name}_{how}" for name in ("type", "error") for how in ("has", "is", "starts")},
}


class Compiled(NamedTuple):
    statement: Statement
    params: dict[str, Any]


def compiled(node: Node) -> Compiled:
    """The condition for ``{matches}``, and its parameters."""
    builder = ConditionBuilder()
    text = written(node, builder)
    return Compiled(builder.statement(_sql().state, text), builder.params)


def compiled_within(columns: Node, texts: Node, lanes: tuple[Lane, ...]) -> Compiled:
    """Likewise, limited to rows that ``columns`` finds between the ends of each lane, so many per lane."""
    builder = ConditionBuilder()
    chosen = [_within_lane(lane, columns, texts, builder) for lane in lanes]
    text = builder.all_of([builder.any_of(chosen), written(texts, builder)])
    return Compiled(builder.statement(_sql().state, text), builder.params)


def _within_lane(lane: Lane, columns: Node, texts: Node, builder: ConditionBuilder) -> str:
    if lane.which in indexed_texts.LANES:
        found = indexed_texts.chosen(texts, lane.which, lane.most, builder)
        in_index = builder.of(postgresql().text_index.in_index, found) if found else builder.any_of([])
        return builder.all_of([in_index, written(columns, builder)])
    part = _sql().after_lane if lane.which == "after" else _sql().in_lane
    return builder.of(part, _lane(lane.which, columns, builder), **_ends(lane))


class Parts(NamedTuple):
    """Parts of the statement that scans a lane, with their parameters."""

    columns: Statement
    texts: Statement
    params: dict[str, Any]


class IndexParts(NamedTuple):
    """Parts of the statement that uses the text index: its candidates, and the conditions on each."""

    chosen: Statement
    columns: Statement
    texts: Statement
    params: dict[str, Any]


def looking_by_index(columns: Node, texts: Node, lane: str, most: int) -> IndexParts | None:
    """At most ``most`` plus one candidates; None if the index cannot help."""
    builder = ConditionBuilder()
    if (chosen := indexed_texts.chosen(texts, lane, most + 1, builder)) is None:
        return None
    column, text, like = written(columns, builder), written(texts, builder), _sql().state
    return IndexParts(
        builder.statement(like, chosen), builder.statement(like, column), builder.statement(like, text), builder.params
    )


def looking_through(columns: Node, texts: Node, which: str) -> Parts:
    builder = ConditionBuilder()
    lane, read = _lane(which, columns, builder), written(texts, builder)
    like = _sql().state
    return Parts(builder.statement(like, lane), builder.statement(like, read), builder.params)


def _lane(which: str, columns: Node, builder: ConditionBuilder) -> str:
    lane = {"dead": [builder.of(_sql().lane_dead)], "others": [builder.of(_sql().lane_others)]}.get(which, [])
    return builder.all_of([written(columns, builder), *lane])


def _ends(lane: Lane) -> dict[str, Any]:
    newest, oldest = lane.newest or (None, None), lane.oldest or (None, None)
    ends = {"newest": newest[0], "newest_seq": newest[1], "oldest": oldest[0], "oldest_seq": oldest[1]}
    return {**ends, "most": lane.most}


def written(node: Node, builder: ConditionBuilder) -> str:
    match node:
        case AllOf(nodes=nodes):
            return builder.all_of(written(each, builder) for each in nodes)
        case AnyOf(nodes=nodes):
            return builder.any_of(written(each, builder) for each in nodes)
        case Excluded(node=inner):
            return builder.excluding(written(inner, builder))
        case Span():
            return builder.all_of(_bounds(node, builder))
        case Term():
            return _TERMS.get(node.field, _plain)(node, builder)


def _bounds(span: Span, builder: ConditionBuilder) -> Iterable[str]:
    for side, bound in (("from", span.low), ("below", span.high)):
        if bound is not None:
            yield builder.of(getattr(_sql(), _part(span.field, side, bound)), value=bound)


def _part(field: str, side: str, bound: Bound) -> str:
    return f"{field}_{side}_ago" if isinstance(bound, float) else f"{field}_{side}"


def _plain(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(getattr(_sql(), _PARTS[term.field, term.how]), value=term.value)


def _named(part: str, special: dict[str, str]) -> Callable[[Term, ConditionBuilder], str]:
    """A condition by value; special values have a part of their own."""

    def made(term: Term, builder: ConditionBuilder) -> str:
        if term.value in special:
            return builder.of(getattr(_sql(), special[term.value]))
        return builder.of(getattr(_sql(), part), value=term.value)

    return made


def _operation(term: Term, builder: ConditionBuilder) -> str:
    number, _, what = term.value.partition("/")
    if not what:
        return builder.of(_sql().operation, value=int(number))
    if f"/{what}" == LAST:
        return builder.of(_sql().last_operation, value=int(number))
    return builder.of(_sql().operation_outcome, value=int(number), outcome=what)


def _has(part: str) -> Callable[[Term, ConditionBuilder], str]:
    """A case-insensitive substring condition."""

    def made(term: Term, builder: ConditionBuilder) -> str:
        if term.how == "has":
            return builder.of(getattr(_sql(), part), like=contains(term.value))
        return _plain(term, builder)

    return made


def _headers(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(_sql().headers, like=contains(term.value))


def _anywhere(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(_sql().anywhere, like=contains(term.value), bytes=_utf8(term.value))


def _body(term: Term, builder: ConditionBuilder) -> str:
    if not term.path:
        return builder.of(_sql().body, bytes=_utf8(term.value))
    values = {term.value, _in_octal(term.value)}
    part = {"is": _sql().one_of, "starts": _sql().like_one_of, "has": _sql().ilike_one_of}[term.how]
    compared = builder.of(part, values=_spelled(term.how, values))
    return builder.of(_sql().body_path, compared.removeprefix("(").removesuffix(")"), path=list(term.path))


def _header(term: Term, builder: ConditionBuilder) -> str:
    name = json.dumps(term.path[0], ensure_ascii=False)[1:-1]
    values = {json.dumps(term.value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    part = {"is": _sql().header, "starts": _sql().header_like, "has": _sql().header_ilike}[term.how]
    return builder.of(part, pattern='"' + _literally(name) + _RAW, values=_spelled(term.how, values))


def _conversation(term: Term, builder: ConditionBuilder) -> str:
    return _header(Term("header", term.value, term.how, (h.CONVERSATION_ID,)), builder)


def _owner(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(_sql().fingerprints, values=list(term.keys))


def _ids(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(_sql().ids, value=[int(each) for each in term.keys])


def _within(term: Term, builder: ConditionBuilder) -> str:
    return builder.of(_sql().within, values=list(term.keys))


def contains(text: str) -> str:
    return f"%{_escaped(text)}%"


def _spelled(how: str, values: Iterable[str]) -> list[str]:
    """Values for ``= any``, ``like any`` and ``ilike any``."""
    before, behind = {"is": ("", ""), "starts": ("", "%"), "has": ("%", "%")}[how]
    return sorted(f"{before}{value if how == 'is' else _escaped(value)}{behind}" for value in values)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")


def _literally(text: str) -> str:
    """Escape for a regular expression of the database."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _in_octal(text: str) -> str:
    """Spell non-ASCII bytes as body_path does: the octal number after \\u0."""
    return "".join(chr(each) if each < 128 else chr(int(f"{each:03o}", 16)) for each in _utf8(text))


def _sql() -> Any:
    return postgresql().archive_search


_TERMS: dict[str, Callable[[Term, ConditionBuilder], str]] = {
    "": _anywhere,
    "state": _named("state", {}),
    "result": _named("result", {"unsuccessful": "unsuccessful"}),
    "kind": _named("kind", {"message": "kind_message"}),
    "op": _operation,
    "message": _has("message_has"),
    "holder": _has("holder_has"),
    "headers": _headers,
    "header": _header,
    "conversation": _conversation,
    "body": _body,
    "owner": _owner,
    "ids": _ids,
    "within": _within,
}
