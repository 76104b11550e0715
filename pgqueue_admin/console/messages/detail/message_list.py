"""The message list of one queue: the query of its address, and the page read for it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pgqueue_admin.archive.search_terms import AllOf
from pgqueue_admin.console import pagination
from pgqueue_admin.console.archive import search
from pgqueue_admin.console.archive.tokens import SearchSyntaxError
from pgqueue_admin.console.messages import waiting_query
from pgqueue_admin.console.messages.payload_columns import BODYLINE
from pgqueue_admin.console.messages.waiting_query import WaitingQuery
from pgqueue_admin.dialects import Connection
from pgqueue_admin.formatting import escape_invisible
from pgqueue_admin.monitor import bodies, browse, waiting_search
from pgqueue_admin.monitor.browse import MessagePage, Place
from pgqueue_admin.monitor.depth import LATE
from pgqueue_admin.monitor.message import WaitingMessage
from pgqueue_admin.monitor.queue_table import QueueTable
from pgqueue_admin.services.content_access import ContentAccess

ROWS = 50
LINE = 200
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class MessageListQuery:
    """The list that an address requests. ``q``: the filter as typed. With an ``error`` nothing is searched."""

    q: str = ""
    order: Literal["head", "newest"] = "head"
    query: WaitingQuery = field(default_factory=WaitingQuery)
    bodyline: bool = False
    after: int | None = None
    before: int | None = None
    row_id: str = ""  # tie-breaker where rows may share the cursor's seq
    error: SearchSyntaxError | None = None

    @property
    def only_expired(self) -> bool:
        return self.query.only_expired

    @property
    def wanted(self) -> AllOf | None:
        return self.query.wanted

    @property
    def place(self) -> tuple[str, str, str]:
        return search.place_of(self.q, self.error)

    def fitting(self, table: QueueTable, searches: bool) -> "MessageListQuery":
        """The query, with an error if this table does not support it."""
        try:
            waiting_query.fitting(self.query, table, searches)
        except SearchSyntaxError as error:
            return replace(self, error=error)
        return self


def asked(query: Mapping[str, str], access: ContentAccess) -> MessageListQuery:
    """Unknown names are ignored, bad values fall back; only the filter box reports errors."""
    q = query.get("q", "").strip().replace("\0", "")
    about: dict[str, Any] = {"q": q, "bodyline": query.get("cols") == BODYLINE}
    about["order"] = "newest" if query.get("order") == "newest" else "head"
    try:
        about["query"] = waiting_query.read(q, access)
        about |= _seq(*about["query"].seq) if about["query"].seq else {}
    except SearchSyntaxError as error:
        about["error"] = error
    for name in ("after", "before"):
        if (seq := pagination.integer(query.get(name))) is not None:
            about |= {name: seq, "row_id": _row_id(query.get(name))}
    return MessageListQuery(**about)


def _row_id(cursor: str | None) -> str:
    found = (pagination.unpack(cursor) or [])[1:2]
    return found[0] if found and isinstance(found[0], str) and _ID.fullmatch(found[0]) else ""


def _seq(sign: str, seq: int) -> dict[str, Any]:
    """``seq:5`` starts there; the order decides the direction."""
    if sign in {"<", "<="}:
        return {"before": seq + (sign == "<="), "order": "newest"}
    return {"after": seq - (sign != ">")}


def page(
    connection: Connection, table: QueueTable, wanted: MessageListQuery, head: int | None, limit: int = ROWS
) -> MessagePage:
    """``head``: the sampled head's seq, so that a first page skips the dead rows before it."""
    if wanted.wanted is not None:
        return _searched(connection, table, wanted, wanted.wanted, limit)
    return browse.page(
        connection,
        table,
        after=_place(wanted.after, wanted.row_id),
        before=_place(wanted.before, wanted.row_id),
        order=wanted.order,
        limit=limit,
        only_expired=wanted.only_expired,
        low_water=None if head is None else head - LATE,
    )


def _searched(
    connection: Connection, table: QueueTable, asked: MessageListQuery, wanted: AllOf, limit: int
) -> MessagePage:
    """Search only forwards, as for expired rows: the next page starts after the last row scanned."""
    is_newest = asked.order == "newest" and (asked.after is None or asked.before is not None)
    start = asked.before if is_newest else asked.after
    condition = waiting_query.condition(connection, wanted)
    found = waiting_search.waiting(
        connection, table, condition, start, limit, newest_first=is_newest, only_expired=asked.only_expired
    )
    onward = None if found.onward is None else {"before" if is_newest else "after": found.onward}
    return MessagePage(found.messages, None, onward, found.looked_at)


def _place(seq: int | None, row_id: str) -> Place | None:
    return (seq, row_id) if seq is not None and row_id else seq


def bodyline(connection: Connection, table: QueueTable, message: WaitingMessage) -> str:
    """The start of the message's body as one line."""
    found = bodies.bodystring(connection, table, message.id, LINE, seq=message.seq)
    return " ".join(escape_invisible.plain(found.text[:LINE]).split()) if found else ""
