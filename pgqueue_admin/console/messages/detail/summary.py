"""The facts of a message in one shape, wherever it is stored: waiting, delayed, archived, in history."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from pgqueue_admin.archive import long_headers
from pgqueue_admin.archive.messages import EDIT_OF, ArchivedMessage
from pgqueue_admin.dialects import Address
from pgqueue_admin.dialects.errors import AddressUnreadable
from pgqueue_admin.formatting import header_parts, numbers
from pgqueue_admin.history.storage.message_lookup import FinishedMessage
from pgqueue_admin.models.queue_database import queue_database
from pgqueue_admin.monitor.message import DelayedMessage, StoredMessage, WaitingMessage
from pgqueue_admin.services.content_access import ContentAccess
from pgqueue_admin.services.masking import message_types
from pgqueue_admin.services.outbox.content import RecordedMessage
from pgqueue_admin.transport.wire import headers as wire
from pgqueue_admin.transport.wire import type_names
from pgqueue_admin.transport.wire.headers import FAILURE_PREFIXES, Headers
from pgqueue_admin.transport.wire.wire_times import parse_time

STATE_WORDS = {"dead_again": "dead again", "retried": "retried"}
LONGEST_ID = 500
_ACT_BEFORE = {"dead": "restored by", "succeeded": "retried by", "dead_again": "retried by"}


def done_by(row: ArchivedMessage) -> str:
    """Who acted last: ``by ana`` if the state is the act, else ``retried by ana``: no person made it succeed or die."""
    return f"{_ACT_BEFORE.get(row.state, 'by')} {row.resolved_by}" if row.resolved_by else ""


@dataclass
class MessageSummary:
    """Read by every part of the page; ``archive_id`` is None for a waiting message."""

    state: str
    address: Address | None
    row_id: UUID | None
    message_id: str
    type: str
    headers_text: str | None
    headers: Headers
    unreadable: str
    body_size: int | None
    sent_at: datetime | None
    access: ContentAccess
    headers_length: int | None = None  # characters and bytes of the whole; headers_text may be its start
    headers_bytes: int | None = None
    seq: int | None = None
    expires_text: str | None = None
    expires_at: datetime | None = None
    due_text: str | None = None  # of a delayed message only
    due_at: datetime | None = None  # as intended: without its table's zone skew
    goes_to: str = ""
    archived: ArchivedMessage | None = None

    @property
    def withheld(self) -> str:
        """Why its content is withheld."""
        return self.access.refusal

    @property
    def types(self) -> tuple[str, ...]:
        """The types that masking rules are matched with."""
        if self.is_lease:
            return message_types.types_of(self.type)
        return message_types.types_told(self.type, self.headers)

    @property
    def archive_id(self) -> int | None:
        return self.archived.id if self.archived else None

    @property
    def is_lease(self) -> bool:
        """Whether it is an archived message of the lease queue, which has no headers."""
        return self.archived is not None and self.archived.kind == "lease"

    @property
    def word(self) -> str:
        return STATE_WORDS.get(self.state, self.state)

    @property
    def short_type(self) -> str:
        return type_names.short_type(self.type) if self.type else "Message of unknown type"

    @property
    def content_type(self) -> str | None:
        return self.headers.get(wire.CONTENT_TYPE)

    @property
    def sender(self) -> str | None:
        return self.headers.get(wire.ORIGINATING_ENDPOINT)

    @property
    def sending_machine(self) -> str | None:
        return self.headers.get(wire.ORIGINATING_MACHINE)

    @property
    def ttbr(self) -> str | None:
        return self.headers.get(wire.TIME_TO_BE_RECEIVED)

    @property
    def conversation_id(self) -> str:
        """Empty also if it is too long for an address."""
        said = self.headers.get(wire.CONVERSATION_ID) or ""
        return said if len(said) <= LONGEST_ID else ""

    @property
    def edited_from(self) -> str:
        """The id of the message that it was edited from, by its header; empty also if too long for an address."""
        said = self.headers.get(EDIT_OF) or ""
        return said if len(said) <= LONGEST_ID else ""

    @property
    def any_id(self) -> str:
        """The id by which its conversation's page finds it."""
        return str(self.archive_id or self.row_id or self.message_id)

    @property
    def delayed_retries(self) -> str | None:
        return self.headers.get(wire.RETRIES)

    @property
    def headers_size(self) -> int:
        return self.headers_bytes or _bytes(self.headers_text)

    @property
    def headers_cut(self) -> bool:
        return long_headers.is_cut(self.headers_text, self.headers_length)

    @property
    def headers_left_out(self) -> str:
        """The note above headers that the page does not show in full."""
        shown = min(len(self.headers), long_headers.MOST)
        if self.headers_cut:
            return f"Only the first {shown:,} are shown: they are {numbers.size(self.headers_size)} in all."
        return f"Only the first {shown:,} of {len(self.headers):,} are shown." if len(self.headers) > shown else ""

    @cached_property
    def parts(self) -> list[header_parts.HeaderGroup]:
        return header_parts.parts(long_headers.shown(self.headers), FAILURE_PREFIXES, parse_time)

    @cached_property
    def on_retry(self) -> tuple[list[str], list[str]]:
        """Names of the headers that a retry keeps, and of those it removes."""
        return header_parts.kept_and_removed(self.headers, FAILURE_PREFIXES)


def of_waiting(message: WaitingMessage, address: Address, access: ContentAccess) -> MessageSummary:
    expires = {"expires_text": message.expires_text, "expires_at": message.expires_at}
    return _of_stored(message, address, access, state=message.state, seq=message.seq, **expires)


def of_delayed(
    message: DelayedMessage, address: Address, access: ContentAccess, due_at: datetime | None, now: datetime
) -> MessageSummary:
    """``due_at``: the intended due time; the stored one differs where writers' zones do."""
    state = "overdue" if due_at and due_at <= now else "delayed"
    return _of_stored(
        message, address, access, state=state, due_text=message.due_text, due_at=due_at, goes_to=message.destination
    )


def _of_stored(stored: StoredMessage, address: Address, access: ContentAccess, **about: Any) -> MessageSummary:
    message = access.stored(stored)
    return MessageSummary(
        address=address,
        row_id=message.id,
        message_id=message.message_id,
        type=message.type,
        headers_text=message.headers_text,
        headers=message.headers,
        headers_bytes=stored.headers_size,
        unreadable=message.unreadable,
        access=access,
        body_size=message.body_size,
        sent_at=message.sent_at,
        **about,
    )


def of_archived(message: ArchivedMessage, access: ContentAccess) -> MessageSummary:
    message = access.archived(message)
    return _of_copy(
        message,
        state=message.state,
        row_id=message.row_id,
        type=message.message_type or "",
        body_size=message.body_bytes,
        expires_text=message.expires,
        archived=message,
        access=access,
    )


def of_finished(message: FinishedMessage, access: ContentAccess) -> MessageSummary:
    """``body_size``: of the body as history keeps it."""
    size = None if message.body is None else len(message.body)
    message = access.finished(message)
    return _of_copy(message, state=message.result, row_id=None, type=message.type or "", body_size=size, access=access)


def of_recorded(message: RecordedMessage, access: ContentAccess) -> MessageSummary:
    """A message that an outbox has yet to send: it is in no queue."""
    headers = access.headers(message.headers, message.types)
    try:
        whole, unreadable = wire.dump(headers), ""
    except wire.HeadersUnreadable as error:
        whole, unreadable = "", str(error)
    text = whole[: long_headers.LONGEST]
    return MessageSummary(
        state="pending",
        address=None,
        row_id=None,
        message_id=message.id,
        type=message.type,
        headers_text=text,
        headers_length=len(whole),
        headers_bytes=_bytes(whole),
        headers=headers,
        unreadable=unreadable,
        sent_at=parse_time(headers.get(wire.TIME_SENT)),
        access=access,
        body_size=len(message.body),
    )


def _of_copy(message: ArchivedMessage | FinishedMessage, **about: Any) -> MessageSummary:
    text = message.headers and message.headers[: long_headers.LONGEST]
    length, size = _sizes(message)
    headers, unreadable = long_headers.read(text, length)
    return MessageSummary(
        address=address_of(message.queue),
        message_id=message.message_id or "",
        headers_text=text,
        headers_length=length,
        headers_bytes=size,
        headers=headers,
        unreadable=unreadable,
        sent_at=message.sent_at,
        **about,
    )


def address_of(queue: str | None) -> Address | None:
    """Parse a canonical address; None if it is none."""
    if not queue:
        return None
    of = queue_database()
    try:
        return of.dialect.parse_address(queue, of.default_schema)
    except AddressUnreadable:
        return None


def _sizes(message: ArchivedMessage | FinishedMessage) -> tuple[int | None, int | None]:
    if isinstance(message, ArchivedMessage):
        return message.headers_length, message.headers_bytes
    return len(message.headers or ""), _bytes(message.headers)


def _bytes(text: str | None) -> int:
    return len((text or "").encode("utf-8", "surrogatepass"))
