"""A message waiting in a table, as shown to a person."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Self
from uuid import UUID

from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire.headers import Headers, HeadersUnreadable
from pgqueue_admin.transport.wire.wire_times import parse_time


@dataclass(frozen=True)
class StoredMessage:
    """The data that every stored message has, in any kind of table."""

    id: UUID
    is_in_flight: bool  # a hint: its row is locked or being deleted right now
    headers_text: str | None  # as received, at most 64 kB
    headers_size: int | None
    body_size: int | None  # None: the body is NULL, which can wedge a receiver (wire sheet 2.6)

    @property
    def headers(self) -> Headers:
        """Empty if unreadable; ``unreadable`` then says why."""
        return self._read[0]

    @property
    def unreadable(self) -> str:
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Headers, str]:
        if self.headers_size and len((self.headers_text or "").encode(errors="surrogatepass")) < self.headers_size:
            return {}, f"the headers are too large to read here ({self.headers_size} bytes)"
        try:
            return wire.parse(self.headers_text), ""
        except HeadersUnreadable as error:
            return {}, str(error)

    @property
    def message_id(self) -> str:
        """An endpoint uses the row's id for a message without one (wire sheet 7.2)."""
        return self.headers.get(wire.MESSAGE_ID) or str(self.id)

    @property
    def type(self) -> str:
        return wire.enclosed_type(self.headers)

    @property
    def sent_at(self) -> datetime | None:
        return parse_time(self.headers.get(wire.TIME_SENT))

    @property
    def delayed_retries(self) -> int:
        count = self.headers.get(wire.RETRIES) or ""
        return int(count) if count.isdecimal() and len(count) < 10 else 0

    @classmethod
    def from_row(cls, row: Any) -> Self:
        return cls(**row._asdict())


@dataclass(frozen=True)
class WaitingMessage(StoredMessage):
    """A row of a queue."""

    seq: int
    expires_text: str | None  # exactly as the database writes it: infinity and years beyond 9999 exist
    expires_at: datetime | None  # None also if beyond the calendar
    is_expired: bool

    @property
    def state(self) -> str:
        return "in flight" if self.is_in_flight else "expired" if self.is_expired else "ready"


@dataclass(frozen=True)
class DelayedMessage(StoredMessage):
    """A row of a delayed table. Its due time is as stored: subtract the table's skew to show it."""

    due_text: str  # exactly as the database writes it, in UTC
    due_at: datetime | None  # None if beyond the calendar: infinity means never

    @property
    def destination(self) -> str:
        """Destination of a second hop, exactly as the sender wrote it; empty: it stays in the queue that it is moved
        to."""
        return self.headers.get(wire.FORWARD_DESTINATION) or ""
