"""The filter of the lease queue's list: the archive's search syntax, as far as it applies to waiting messages."""

import re
from dataclasses import dataclass, replace

from pgqueue_admin.archive.search_terms import AllOf, Node, Span, Term
from pgqueue_admin.console.archive import fields, measures, search
from pgqueue_admin.console.archive.measures import Bounds, Wrong
from pgqueue_admin.console.archive.syntax import parsed
from pgqueue_admin.console.archive.tokens import SearchSyntaxError
from pgqueue_admin.console.messages import waiting_query
from pgqueue_admin.console.pagination import LARGEST
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor import waiting_search
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.monitor.waiting_search import EVERY_NUMBER, Found, NumberRange
from pgqueue_admin.services.content_access import ContentAccess

STATES = {"waiting": "waiting", "locked": "locked", "expired": "over", "later": "later"}
NAMES = ("type", "is", "id", "holder", "attempts", "sent", "age", "size", "body", "body.path.to")
_OWN = {"is", "id", "holder"}
_OF_OURS = {"attempts", "holder"}  # unknown in a table of the original client
_HEADERS = "messages here have no headers. body. with keys looks into their document: body.order.no:4711."
_NOT_HERE = {
    "queue": "this page is of one queue.",
    "state": f"what lies here has not ended. Try {', '.join(f'is:{each}' for each in STATES)}.",
    "kind": "its kind is its type here: type:render.",
    "endpoint": "who has it locked is found by holder:.",
    "host": "who has it locked is found by holder:.",
    "conversation": _HEADERS,
    "header": _HEADERS,
    "headers": _HEADERS,
    "since": "write sent:1h, or age:<1h.",
    "until": "write age:>1h.",
    "seq": "a message here has a number: id:17, id:>17, id:5..9.",
}
_ENDED = "that is known of messages in the archive. What lies here has not ended."
# In URLs of the former syntax, several states mean any of them.
_STATES = re.compile(rf"(?<!\S)is:(?:{'|'.join(STATES)})(?!\S)")
_JOINED = re.compile(r'["()]|(?<!\S)(?:OR(?!\S)|-)')


@dataclass(frozen=True)
class LeaseQuery:
    """``wanted``: None without a filter. ``numbers``: the range to search. With an ``error``, nothing is searched."""

    text: str
    wanted: AllOf | None = None
    numbers: NumberRange = EVERY_NUMBER
    error: SearchSyntaxError | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        return search.place_of(self.text, self.error)


def read(text: str, access: ContentAccess, table: QueueTable) -> LeaseQuery:
    """A person who may not read contents may not search them either: counts would reveal them letter by letter."""
    query, nodes = LeaseQuery(text.strip().replace("\0", "")), list[Node]()
    try:
        for node, typed, at in parsed(query.text, lambda term, at: _term(term, at, table)) if query.text else ():
            waiting_query.refuse_unreadable(node, typed, at, access)
            if isinstance(node, Span) and node.field == "number":
                query = replace(query, numbers=_between(query.numbers, node))
            nodes.append(node)
    except SearchSyntaxError as error:
        return replace(query, error=error)
    return replace(query, wanted=AllOf(tuple(nodes)) if nodes else None)


def look(
    connection: Connection,
    table: QueueTable,
    asked: LeaseQuery,
    limit: int,
    *,
    is_newest_first: bool = False,
    after: int | None = None,
    before: int | None = None,
) -> Found:
    """The matching messages within the query's numbers and the page's bounds."""
    low, high = asked.numbers
    low, high = max(low, low if after is None else after + 1), min(high, high if before is None else before - 1)
    condition = waiting_query.condition(connection, asked.wanted or AllOf(()))
    return waiting_search.leases(
        connection, table, condition, NumberRange(low, high), limit, newest_first=is_newest_first
    )


def as_written_now(text: str) -> str | None:
    """A former URL's search, whose several states meant any of them, in the present syntax; None: nothing differs."""
    states = _STATES.findall(text)
    if len(states) < 2 or _JOINED.search(text):
        return None
    return " ".join([*_STATES.sub("", text).split(), " OR ".join(states)])


def _between(numbers: NumberRange, span: Span) -> NumberRange:
    """A term at the top level limits the range, which the index then reads."""
    low, high = span.low, span.high
    return NumberRange(
        max(numbers.low, low) if isinstance(low, int) else numbers.low,
        min(numbers.high, high - 1) if isinstance(high, int) else numbers.high,
    )


def _term(text: str, at: int, table: QueueTable) -> Node:
    """As the archive reads it, except that an age counts from publishing."""
    name, colon, value = text.partition(":")
    name = name.lower() if colon else ""
    if name in _NOT_HERE or name.partition(".")[0] == "header":
        raise SearchSyntaxError(text, _NOT_HERE.get(name, _HEADERS), at)
    if name in _OF_OURS and not table.has_attempts:
        raise SearchSyntaxError(text, "a table of the original client does not tell it.", at)
    if name in _OWN:
        return _own(name, value, text, at)
    node = fields.term(text, at, NAMES)
    if name in fields.NAMES and name not in NAMES:
        raise SearchSyntaxError(text, _ENDED, at)
    return replace(node, field="sent") if isinstance(node, Span) and name == "age" else node


def _own(name: str, value: str, text: str, at: int) -> Node:
    try:
        if name == "id":
            return Span("number", text, *measures.bounds(value.removeprefix("="), _number))
        if name == "holder":
            return fields.named(name, value)
        if value not in STATES:
            raise Wrong(f"there is no such state. Try {', '.join(f'is:{each}' for each in STATES)}.")
        return Term("is", STATES[value], "is")
    except Wrong as error:
        raise SearchSyntaxError(text, str(error), at) from None


def _number(value: str) -> Bounds:
    number = parse_int(value, LARGEST - 1)
    if number is None:
        raise Wrong(f"{value or 'nothing'} is no number of a message. Try id:17, id:>17, id:5..9.")
    return Bounds(number, number + 1)
