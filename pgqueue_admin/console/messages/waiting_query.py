"""The filter of a queue's list: the archive's grammar, as far as it applies to waiting messages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pgqueue_admin.archive import search_condition, store
from pgqueue_admin.archive.messages import ArchiveFilter
from pgqueue_admin.archive.search_terms import AllOf, AnyOf, Excluded, Node, Span, Term, reads_text
from pgqueue_admin.console.archive import fields
from pgqueue_admin.console.archive.syntax import parsed
from pgqueue_admin.console.archive.tokens import SearchSyntaxError
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.monitor.queue_table import QueueTable, TableKind
from pgqueue_admin.monitor.waiting_search import Condition
from pgqueue_admin.services.content_access import ContentAccess

OWN = ("seq", "is")  # terms of this list alone: position in the queue, and expiry
_OWN = re.compile(r"(?P<name>seq|is):(?P<value>\S*)")
_SIGNS = ("", ">", ">=", "<", "<=")
KNOWN = {"", "type", "id", "conversation", "header", "headers", "body", "sent", "size"}
NAMES = (*sorted(KNOWN - {"", "header"}), "age", *OWN, "header.NAME", "body.path.to")
_NOT_HERE = {
    "queue": "this page is of one queue.",
    "state": "what waits here is ready, in flight or expired: is:expired finds the expired.",
    "endpoint": "nobody has handled what waits. header.NServiceBus.OriginatingEndpoint: says who sent it.",
    "host": "no machine has handled what waits. header.NServiceBus.OriginatingMachine: says where it was sent.",
    "attempts": "how often it was tried stands nowhere. header.NServiceBus.Retries: counts delayed retries.",
}
_DEAD = "that is known of messages in the archive. What waits here has not died."


@dataclass(frozen=True)
class WaitingQuery:
    """``wanted``: None without a text search. ``seq``: a sign and a position. ``of_queue``: seq or is:expired as typed,
    and its offset: a delayed table supports neither.
    """

    wanted: AllOf | None = None
    seq: tuple[str, int] | None = None
    only_expired: bool = False
    of_queue: tuple[str, int] | None = None


def read(text: str, access: ContentAccess) -> WaitingQuery:
    """Raises SearchSyntaxError: then nothing is searched."""
    query, nodes = WaitingQuery(), list[Node]()
    for node, typed, at in parsed(text, _term) if text else ():
        own = [node] if isinstance(node, Term) and node.field in OWN else []
        for term in _terms(node):
            if term.field in OWN and not own:
                raise SearchSyntaxError(typed or term.field, f"{term.field}: stands by itself here.", at)
        refuse_unreadable(node, typed, at, access)
        for term in own:
            query = replace(query, of_queue=(typed, at), **_of_queue(term))
        nodes += [] if own else [node]
    return replace(query, wanted=AllOf(tuple(nodes)) if nodes else None)


def refuse_unreadable(node: Node, typed: str, at: int, access: ContentAccess) -> None:
    """Raises SearchSyntaxError if a term reads what this person may not."""
    for term in _terms(node):
        if reads_text(term) and (refusal := access.search_refusal(term.field, term.path)):
            raise SearchSyntaxError(typed, refusal, at)


def fitting(query: WaitingQuery, table: QueueTable, searches: bool) -> None:
    """Raises SearchSyntaxError if this table does not support the query."""
    if query.of_queue and table.kind is TableKind.DELAYED:
        typed, at = query.of_queue
        raise SearchSyntaxError(typed, "that is of queues. A delayed table is in the order of due times.", at)
    if query.wanted is None:
        return
    if not searches:
        why = "what messages say is looked for in PostgreSQL alone. Here seq: and is:expired work."
        raise SearchSyntaxError("", why)
    if table.has_messages and not table.seq_unique:
        raise SearchSyntaxError("", "several rows may have one seq here, so that a search cannot say where it stands.")


def _of_queue(term: Term) -> dict[str, Any]:
    if term.field == "is":
        return {"only_expired": True}
    sign = term.value.removesuffix(term.value.lstrip("<>="))
    return {"seq": (sign, int(term.value.removeprefix(sign)))}


def condition(connection: Connection, wanted: AllOf) -> Condition:
    """Raises ServerTooOld if bodies must be read as JSON and the server cannot."""
    store.check(connection, ArchiveFilter(state="", also=wanted.nodes))
    return Condition(*search_condition.compiled(wanted))  # no scope: access to the queue was checked when it was opened


def _term(text: str, at: int) -> Node:
    """Parse as the archive does, but an age counts from sending."""
    if found := _OWN.fullmatch(text):
        return _own(found["name"], found["value"], text, at)
    node = fields.term(text, at, NAMES)
    name = text.partition(":")[0].lower() if ":" in text else ""
    if isinstance(node, Span) and name == "age":
        return replace(node, field="sent")
    if isinstance(node, Span) and name in ("since", "until", "died", "attempts"):
        raise SearchSyntaxError(text, _NOT_HERE.get(name, _DEAD), at)
    if isinstance(node, Term) and node.field not in KNOWN:
        raise SearchSyntaxError(text, _NOT_HERE.get(node.field, _DEAD), at)
    return node


def _own(name: str, value: str, text: str, at: int) -> Term:
    if name == "is" and value != "expired":
        raise SearchSyntaxError(text, "of states there is is:expired alone.", at)
    if name == "seq" and parse_int(value.lstrip("<>=")) is None:
        raise SearchSyntaxError(text, f"{value or 'nothing'} is not a seq. Enter a whole number: seq:>88141900.", at)
    if name == "seq" and value.removesuffix(value.lstrip("<>=")) not in _SIGNS:
        raise SearchSyntaxError(text, "write >, >=, < or <= before the number.", at)
    return Term(name, value, "is")


def _terms(node: Node) -> Iterator[Term]:
    match node:
        case Term():
            yield node
        case Excluded(node=inner):
            yield from _terms(inner)
        case AllOf(nodes=nodes) | AnyOf(nodes=nodes):
            for each in nodes:
                yield from _terms(each)
