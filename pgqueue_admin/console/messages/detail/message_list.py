"""Messages of one queue as its list shows them: what was asked for, and what was read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pgqueue_admin.console import pagination
from pgqueue_admin.console.parsing import parse_int
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.monitor import bodies, browse
from pgqueue_admin.monitor.browse import MessagePage, Place
from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable

ROWS = 50
LINE = 200
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TERM = re.compile(r"(?P<field>[a-z]+):(?P<sign>>=|<=|>|<|)(?P<value>\S*)")


@dataclass(frozen=True)
class MessageListQuery:
    """The list that an address asks for. ``error`` says which word of the filter is not understood."""

    q: str = ""
    order: Literal["head", "newest"] = "head"
    only_expired: bool = False
    bodyline: bool = False
    after: int | None = None
    before: int | None = None
    row_id: str = ""  # where several rows may have the seq of a cursor
    error: str = ""


def asked(query: Mapping[str, str]) -> MessageListQuery:
    """Unknown names are ignored, bad values fall back; only the filter box answers back."""
    about: dict[str, Any] = {"q": query.get("q", "").strip(), "bodyline": query.get("cols") == "bodyline"}
    about["order"] = "newest" if query.get("order") == "newest" else "head"
    for term in about["q"].split():
        about |= _term(term)
    for name in ("after", "before"):
        if (seq := pagination.integer(query.get(name))) is not None:
            about |= {name: seq, "row_id": _row_id(query.get(name))}
    return MessageListQuery(**about)


def _row_id(cursor: str | None) -> str:
    found = (pagination.unpack(cursor) or [])[1:2]
    return found[0] if found and isinstance(found[0], str) and _ID.fullmatch(found[0]) else ""


def _term(term: str) -> dict[str, Any]:
    match = _TERM.fullmatch(term)
    if match and match["field"] == "is" and match["value"] == "expired":
        return {"only_expired": True}
    if not match or match["field"] != "seq":
        return {"error": f"{term} is not understood here. Try seq:>88141900 or is:expired."}
    seq = parse_int(match["value"])
    if seq is None:
        return {"error": f"{match['value'] or 'nothing'} is not a seq. Enter a whole number, such as seq:>88141900."}
    return _seq(match["sign"], seq)


def _seq(sign: str, seq: int) -> dict[str, Any]:
    """``seq:5`` begins there; order decides which way it goes on."""
    if sign in {"<", "<="}:
        return {"before": seq + (sign == "<="), "order": "newest"}
    return {"after": seq - (sign != ">")}


def page(connection: Connection, table: QueueTable, wanted: MessageListQuery, head: int | None) -> MessagePage:
    """``head`` is the sampled head's seq: a first page need not walk the dead rows before it."""
    return browse.page(
        connection,
        table,
        after=_place(wanted.after, wanted.row_id),
        before=_place(wanted.before, wanted.row_id),
        order=wanted.order,
        limit=ROWS,
        only_expired=wanted.only_expired,
        low_water=None if head is None else head - LATE,
    )


def _place(seq: int | None, row_id: str) -> Place | None:
    return (seq, row_id) if seq is not None and row_id else seq


def bodyline(connection: Connection, table: QueueTable, message: WaitingMessage) -> str:
    """The start of its body as one line."""
    found = bodies.bodystring(connection, table, message.id, LINE)
    return " ".join(escape_invisible.plain(found.text[:LINE]).split()) if found else ""
