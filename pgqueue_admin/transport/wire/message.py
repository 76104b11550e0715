"""Incoming and outgoing messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from pgqueue_admin.dialects import Address
from pgqueue_admin.transport.wire import headers as h
from pgqueue_admin.transport.wire.delivery_delay import Delay
from pgqueue_admin.transport.wire.wire_times import parse_time, parse_timespan


@dataclass(slots=True)
class IncomingMessage:
    """A received row. Unreadable headers count as none, and ``unreadable`` says why.

    Treat it as immutable; it is not frozen, because creating a frozen one costs more than parsing its headers.
    """

    queue: Address
    row_id: str  # T2: a UUID as text, made by the sender; the transport only tells rows apart by it
    seq: int
    expired: bool
    headers_text: str
    raw_body: bytes | None
    headers: h.Headers = field(default_factory=dict)
    unreadable: str = ""
    headers_lost: bool = False  # the headers are unreadable, not the body

    @classmethod
    def of_row(cls, queue: Address, row: Any) -> "IncomingMessage":
        try:
            headers = h.parse(row.headers)
        except h.HeadersUnreadable as error:
            headers, unreadable, lost = {}, str(error), True
        else:
            unreadable, lost = "the body is NULL" if row.body is None else "", False
        return cls(queue, row.id, row.seq, row.expired, row.headers, row.body, headers, unreadable, lost)

    @property
    def body(self) -> bytes:
        return self.raw_body or b""

    @property
    def message_id(self) -> str:
        """The logical id, or the row's id if the sender gave none."""
        return self.headers.get(h.MESSAGE_ID) or self.row_id

    @property
    def types(self) -> tuple[str, ...]:
        return h.types_in(self.headers.get(h.ENCLOSED_MESSAGE_TYPES) or "")

    @property
    def type(self) -> str:
        """Full name of the concrete type, or empty."""
        types = self.types
        return types[0] if types else ""

    @property
    def forward_to(self) -> str:
        """Final destination of a delayed message, as its sender wrote it."""
        return self.headers.get(h.FORWARD_DESTINATION) or ""

    def at_its_destination(self) -> "IncomingMessage":
        """The message without the forward header, as handlers and error queues see it."""
        kept = {name: value for name, value in self.headers.items() if name != h.FORWARD_DESTINATION}
        return replace(self, headers=kept)

    @property
    def sent(self) -> datetime | None:
        """When it was sent, or due if delayed."""
        due = self.headers.get(h.DELIVER_AT)
        return (parse_time(due) if due else None) or parse_time(self.headers.get(h.TIME_SENT))

    @property
    def time_to_be_received(self) -> timedelta | None:
        return parse_timespan(self.headers.get(h.TIME_TO_BE_RECEIVED))


@dataclass(slots=True)
class OutgoingMessage:
    """One row to insert. The message's id is in the headers; the row's id is made at the insert (T2)."""

    destination: Address
    headers: Mapping[str, str | None]
    body: bytes
    ttbr: timedelta | None = None
    delay: Delay | None = None

    @property
    def message_id(self) -> str | None:
        """The message's id; None if the sender gave none."""
        return h.message_id(self.headers)

    @property
    def key(self) -> tuple[str | None, Address]:
        """Of messages with the same key in one dispatch, only the last is sent (wire sheet 5)."""
        return self.message_id, self.destination
